//! What can go wrong, as the sentences an operator reads in the workflow's status.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// A failed step of work on disks.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An image of a container that does not fit into memory.
    #[error("the image {image:?} needs more than {}, which is what this machine's free memory has \
        for images", stdx::bytes(*room))]
    ImageTooLarge {
        /// As the template says it.
        image: String,
        /// Bytes it may have.
        room: u64,
    },
    /// An entry of a container's layer was refused or could not be made.
    #[error("cannot unpack {} of the layer {url}",
        if entry.is_empty() { "the rest" } else { entry })]
    Layer {
        /// The layer.
        url: String,
        /// The entry's name; empty for the layer as a whole.
        entry: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A URL this agent cannot fetch.
    #[error("cannot fetch {url}: {reason}")]
    Url {
        /// Without user, password or query.
        url: String,
        /// Why not.
        reason: String,
    },
    /// A definite refusal by the image server.
    #[error("{url} is refused: {status}")]
    Status {
        /// What was asked for.
        url: String,
        /// The status line's code and reason, and what the server says beside.
        status: String,
    },
    /// No byte for too long.
    #[error("no new byte of {url} for {}, at {}: {reason}",
        stdx::seconds(u64::try_from(waited.as_millis()).unwrap_or(u64::MAX)), stdx::bytes(*offset))]
    GaveUp {
        /// What was being read.
        url: String,
        /// Bytes read.
        offset: u64,
        /// How long ago the last one came.
        waited: Duration,
        /// What the last attempt met.
        reason: String,
    },
    /// Two reads of one URL gave different images.
    #[error("{url} changed while it was being read")]
    Changed {
        /// What was being read.
        url: String,
    },
    /// Nothing could tell whether all of it arrived.
    #[error("{url} has no stated length and no checksum was given, so a cut could not be noticed")]
    Unbounded {
        /// What was being read.
        url: String,
    },
    /// An image in a form this agent does not know.
    #[error(
        "{url} is {found}, which is not supported: use raw or qcow2, or raw in gzip, xz, \
        zstd, bzip2 or lz4"
    )]
    Format {
        /// What was being read.
        url: String,
        /// What it begins like.
        found: String,
    },
    /// An archive of files in place of an image.
    #[error(
        "{url} is a tar archive, not the image of a disk: nothing was written. Use archive2disk to \
         unpack it into a file system, or pack the image alone with gzip, xz or zstd"
    )]
    Tar {
        /// What was being read.
        url: String,
    },
    /// The image's partition table counts in other sectors than the disk.
    #[error(
        "the image {url} is for disks with sectors of {image} bytes, and those of {} have \
         {sector}: the disk would have no partitions. Make the image for {sector}-byte sectors",
        disk.display()
    )]
    Sectors {
        /// What was read.
        url: String,
        /// Bytes of a sector by the image's partition table.
        image: usize,
        /// The disk.
        disk: PathBuf,
        /// Bytes of its sectors.
        sector: usize,
    },
    /// The decoder met bytes it cannot decode, or too few of them.
    #[error("cannot decode the {format} image {url}")]
    Decode {
        /// Such as gzip.
        format: &'static str,
        /// What was being read.
        url: String,
        /// What the decoder said.
        #[source]
        source: io::Error,
    },
    /// The image does not fit.
    #[error("the image {url} is larger than {}, which holds {}", disk.display(),
        stdx::bytes(*size))]
    TooLarge {
        /// What was being read.
        url: String,
        /// The disk.
        disk: PathBuf,
        /// Its size in bytes.
        size: u64,
    },
    /// The bytes are not the expected ones.
    #[error("{algorithm} of the image is {actual}, expected {expected} ({url})")]
    Digest {
        /// Which sum.
        algorithm: &'static str,
        /// Of the stream as served.
        actual: String,
        /// As the action states it.
        expected: String,
        /// What was read.
        url: String,
    },
    /// The publisher's file of sums does not have this image's.
    #[error("{sums} has no md5, sha256 or sha512 sum for {name:?}")]
    NoSum {
        /// The file of sums.
        sums: String,
        /// The image's file name.
        name: String,
    },
    /// Two lines of the publisher's file of sums fit the image equally well.
    #[error(
        "{sums} has different sums for {name:?}: the lines of {first:?} and {second:?} fit the \
        image's URL equally well; state the sum by IMG_CHECKSUM"
    )]
    SeveralSums {
        /// The file of sums.
        sums: String,
        /// The image's file name.
        name: String,
        /// Name in one line.
        first: String,
        /// Name in the other.
        second: String,
    },
    /// The image ends before the disk that it describes.
    #[error(
        "the image {url} is truncated: it has {length} bytes, and its partition table is for a \
        disk of {stated}"
    )]
    Short {
        /// What was read.
        url: String,
        /// Bytes of the disk by its partition table.
        stated: u64,
        /// Bytes there are.
        length: u64,
    },
    /// The disk has other bytes than it was given.
    #[error("{} reads back other bytes than were written at {} (image {url})", disk.display(),
        stdx::bytes(*offset))]
    ReadBack {
        /// What was written.
        url: String,
        /// The disk.
        disk: PathBuf,
        /// Where the first wrong buffer begins.
        offset: u64,
    },
    /// No such disk.
    #[error("{} did not appear within {} s", path.display(), waited.as_secs())]
    NoDisk {
        /// The device.
        path: PathBuf,
        /// How long was waited.
        waited: Duration,
    },
    /// No disk, or more than one, is what the action names.
    #[error("cannot tell which disk is {named:?}: {reason}")]
    NoSuchDisk {
        /// As the action states it.
        named: String,
        /// What fits and what does not.
        reason: String,
    },
    /// The box did not record that a hint chose this disk.
    #[error("disk {named:?} is not used: {reason}")]
    OtherDisk {
        /// As the action states it.
        named: String,
        /// The box's answer.
        reason: String,
    },
    /// The owner's policy.
    #[error("{} is not written: disk {disk} is to be preserved", path.display())]
    Preserved {
        /// What was to be written.
        path: PathBuf,
        /// The disk below it.
        disk: String,
    },
    /// The owner's policy names a disk that is not known.
    #[error(
        "{} is not written: {word} is to be preserved, and no disk of this machine is known by \
         that name, so that any disk may be the one; name it by serialNumber=… or wwn=… in the \
         annotation tinbox.dev/preserve-disks of its Hardware, or plug it in", path.display()
    )]
    PreservedUnknown {
        /// What was to be written.
        path: PathBuf,
        /// The name in the policy.
        word: String,
    },
    /// A disk that cannot be erased as was asked for, or has not been.
    #[error("cannot erase {}: {reason}", path.display())]
    Erase {
        /// The disk.
        path: PathBuf,
        /// What is in the way, how the disk was left, and what to do.
        reason: String,
    },
    /// A disk still has what it had.
    #[error("{} was wiped by {method}, and at {} it still has data", path.display(),
        stdx::bytes(*offset))]
    NotErased {
        /// The disk.
        path: PathBuf,
        /// How.
        method: &'static str,
        /// Where the sample is.
        offset: u64,
    },
    /// The path is something else.
    #[error("{} is not a block device", path.display())]
    NotBlockDevice {
        /// The path.
        path: PathBuf,
    },
    /// Somebody else holds the disk.
    #[error("{} is in use: it, or a partition of it, is mounted", path.display())]
    DiskBusy {
        /// The device.
        path: PathBuf,
    },
    /// The kernel has no such filesystem.
    #[error("the agent's kernel cannot mount {fs_type}; it has ext4, xfs, btrfs and vfat")]
    FileSystem {
        /// As the action states it.
        fs_type: String,
    },
    /// A system call failed.
    #[error("cannot {doing}")]
    Io {
        /// What was attempted, with what.
        doing: String,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
    /// An entry of an archive was refused or could not be made.
    #[error("cannot unpack {} of {url} on {}", if entry.is_empty() { "the rest" } else { entry },
        device.display())]
    Unpack {
        /// The archive.
        url: String,
        /// The entry's name; empty for the archive as a whole.
        entry: String,
        /// The partition.
        device: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The programs that disks are partitioned and formatted with are not to be had.
    #[error(
        "there are no tools for this: {reason}; `image/artifacts.sh FOLDER agent` puts them into \
        what the box serves"
    )]
    NoTools {
        /// What is missing.
        reason: String,
    },
    /// A description of disks, arrays, volumes and file systems that cannot be carried out.
    #[error("cannot use the description of storage: {reason}")]
    Storage {
        /// What is wrong with it, and where.
        reason: String,
    },
    /// A program of the machine's ended with a failure.
    #[error("{program} ended with {status}{}{said}", if said.is_empty() { "" } else { ": " })]
    Program {
        /// Its name.
        program: String,
        /// How it ended.
        status: std::process::ExitStatus,
        /// The last lines it printed.
        said: String,
    },
    /// The action was told to stop.
    #[error("the action was stopped")]
    Stopped,
    /// A part of the agent ended without saying why.
    #[error("{part} ended unexpectedly: {reason}")]
    Crashed {
        /// Which part.
        part: &'static str,
        /// The panic's text.
        reason: String,
    },
}

impl Error {
    /// For `map_err`: an [`Error::Io`] that says what was attempted.
    pub fn io<E: Into<io::Error>>(doing: impl Into<String>) -> impl FnOnce(E) -> Self {
        let doing = doing.into();
        move |source| Self::Io { doing, source: source.into() }
    }
}
