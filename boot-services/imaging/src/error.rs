//! Errors of work on disks. Their text is a sentence that an operator reads in the workflow's
//! status.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// A failed step of work on disks.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A container image that does not fit into memory.
    #[error("the image {image:?} needs more than {}, which is the free memory for images on this \
        machine", stdx::bytes(*room))]
    ImageTooLarge {
        /// Image reference as the template states it.
        image: String,
        /// Bytes of memory that images may use.
        room: u64,
    },
    /// An entry of a container's layer that was refused or could not be created.
    #[error("cannot unpack {} of the layer {url}",
        if entry.is_empty() { "the rest" } else { entry })]
    Layer {
        /// URL of the layer.
        url: String,
        /// Name of the entry; empty for the layer as a whole.
        entry: String,
        /// Reason for the refusal or failure.
        #[source]
        source: io::Error,
    },
    /// A URL that this agent cannot fetch.
    #[error("cannot fetch {url}: {reason}")]
    Url {
        /// URL without user, password or query.
        url: String,
        /// Reason why the agent cannot fetch the URL.
        reason: String,
    },
    /// A definite refusal by the image server.
    #[error("{url} is refused: {status}")]
    Status {
        /// URL that the agent requested.
        url: String,
        /// Code and reason of the HTTP status line, and the text that the server adds.
        status: String,
    },
    /// A download that received no byte for too long.
    #[error("no data of {url} arrived for {}, at {}: {reason}",
        stdx::seconds(u64::try_from(waited.as_millis()).unwrap_or(u64::MAX)), stdx::bytes(*offset))]
    GaveUp {
        /// URL of the download.
        url: String,
        /// Bytes read before the wait.
        offset: u64,
        /// Time since the last byte arrived.
        waited: Duration,
        /// Failure of the last attempt.
        reason: String,
    },
    /// Two reads of one URL gave different images.
    #[error("{url} changed while it was being read")]
    Changed {
        /// URL of the image.
        url: String,
    },
    /// A download whose completeness nothing proves: no length from the server and no checksum.
    #[error("{url} has no Content-Length and no checksum: a truncated download is not detected")]
    Unbounded {
        /// URL of the image.
        url: String,
    },
    /// An image in a format that this agent does not support.
    #[error(
        "{url} is {found}, which is not supported: use raw or qcow2, or raw in gzip, xz, \
        zstd, bzip2 or lz4"
    )]
    Format {
        /// URL of the image.
        url: String,
        /// Description of the format, from the first bytes of the image.
        found: String,
    },
    /// A tar archive where a disk image is expected.
    #[error(
        "{url} is a tar archive, not a disk image: nothing was written. Use archive2disk to \
         unpack it into a file system, or compress the image alone with gzip, xz or zstd"
    )]
    Tar {
        /// URL of the archive.
        url: String,
    },
    /// The image's partition table uses another sector size than the disk.
    #[error(
        "the image {url} is for disks with {image}-byte sectors, but {} has sectors of {sector} \
         bytes: the disk would have no partitions. Make the image for {sector}-byte sectors",
        disk.display()
    )]
    Sectors {
        /// URL of the image.
        url: String,
        /// Sector size in the image's partition table, in bytes.
        image: usize,
        /// Path of the disk.
        disk: PathBuf,
        /// Sector size of the disk, in bytes.
        sector: usize,
    },
    /// Bytes that the decoder cannot decode, or too few bytes.
    #[error("cannot decode the {format} image {url}")]
    Decode {
        /// Name of the compression format, such as gzip.
        format: &'static str,
        /// URL of the image.
        url: String,
        /// Error of the decoder.
        #[source]
        source: io::Error,
    },
    /// An image that is larger than the disk.
    #[error("the image {url} is larger than {}, which has {}", disk.display(),
        stdx::bytes(*size))]
    TooLarge {
        /// URL of the image.
        url: String,
        /// Path of the disk.
        disk: PathBuf,
        /// Size of the disk, in bytes.
        size: u64,
    },
    /// The checksum differs from the expected one.
    #[error("{algorithm} of the image is {actual}, expected {expected} ({url})")]
    Digest {
        /// Name of the checksum algorithm.
        algorithm: &'static str,
        /// Checksum of the stream as served, that is, still compressed.
        actual: String,
        /// Checksum that the action states.
        expected: String,
        /// URL of the image.
        url: String,
    },
    /// The publisher's file of checksums has no line for this image.
    #[error("{sums} has no md5, sha256 or sha512 sum for {name:?}")]
    NoSum {
        /// URL of the publisher's file of checksums.
        sums: String,
        /// File name of the image.
        name: String,
    },
    /// Two lines of the publisher's file of checksums fit the image equally well.
    #[error(
        "{sums} has different checksums for {name:?}: the lines of {first:?} and {second:?} match \
        the image's URL equally well; set IMG_CHECKSUM"
    )]
    SeveralSums {
        /// URL of the publisher's file of checksums.
        sums: String,
        /// File name of the image.
        name: String,
        /// File name in the first of the two lines.
        first: String,
        /// File name in the second of the two lines.
        second: String,
    },
    /// The image ends before the disk that its partition table describes.
    #[error(
        "the image {url} is truncated: it has {length} bytes, and its partition table is for a \
        disk of {stated}"
    )]
    Short {
        /// URL of the image.
        url: String,
        /// Bytes of the disk that the partition table describes.
        stated: u64,
        /// Bytes that the image has.
        length: u64,
    },
    /// The disk returns other bytes than were written.
    #[error("{} returned other data than was written at {} (image {url})", disk.display(),
        stdx::bytes(*offset))]
    ReadBack {
        /// URL of the written image.
        url: String,
        /// Path of the disk.
        disk: PathBuf,
        /// Offset of the first buffer that differs, in bytes.
        offset: u64,
    },
    /// A device that did not appear in time.
    #[error("{} did not appear within {} s", path.display(), waited.as_secs())]
    NoDisk {
        /// Path of the device.
        path: PathBuf,
        /// Time spent waiting for the device.
        waited: Duration,
    },
    /// The name in the action fits no disk, or more than one.
    #[error("cannot find the disk {named:?}: {reason}")]
    NoSuchDisk {
        /// Disk name as the action states it.
        named: String,
        /// Candidates that fit the name, and those that do not.
        reason: String,
    },
    /// The box has no record that a hint selected this disk.
    #[error("cannot use the disk {named:?}: {reason}")]
    OtherDisk {
        /// Disk name as the action states it.
        named: String,
        /// Reason that the box returned.
        reason: String,
    },
    /// A write to a disk that the owner's policy preserves.
    #[error("refused to write {}: disk {disk} is preserved", path.display())]
    Preserved {
        /// Path of the device to write.
        path: PathBuf,
        /// Name of the preserved disk below that device.
        disk: String,
    },
    /// The owner's policy names a disk that this machine does not have.
    #[error(
        "refused to write {}: the preserved disk {word} was not found, so it can be any disk of \
         this machine; name it by serialNumber=… or wwn=… in the annotation \
         tinbox.dev/preserve-disks of the Hardware, or connect it", path.display()
    )]
    PreservedUnknown {
        /// Path of the device to write.
        path: PathBuf,
        /// Disk name in the policy.
        word: String,
    },
    /// An erase that is not possible as requested, or that failed.
    #[error("cannot erase {}: {reason}", path.display())]
    Erase {
        /// Path of the disk.
        path: PathBuf,
        /// Obstacle, state of the disk afterwards, and what the operator should do.
        reason: String,
    },
    /// A disk that still has old data after an erase.
    #[error("{} still has data after a wipe by {method}, at {}", path.display(),
        stdx::bytes(*offset))]
    NotErased {
        /// Path of the disk.
        path: PathBuf,
        /// Erase method, as WIPE_METHOD names it.
        method: &'static str,
        /// Offset of the sample with old data, in bytes.
        offset: u64,
    },
    /// A path that is not a block device.
    #[error("{} is not a block device", path.display())]
    NotBlockDevice {
        /// Path that the action states.
        path: PathBuf,
    },
    /// The disk is already open exclusively, or a partition of the disk is mounted.
    #[error("{} is in use: it, or a partition of it, is mounted", path.display())]
    DiskBusy {
        /// Path of the device.
        path: PathBuf,
    },
    /// A filesystem that the agent's kernel does not support.
    #[error("cannot mount {fs_type}: the agent's kernel has ext4, xfs, btrfs and vfat")]
    FileSystem {
        /// Filesystem type as the action states it.
        fs_type: String,
    },
    /// A system call that failed.
    #[error("cannot {doing}")]
    Io {
        /// Operation and its object, as a verb phrase.
        doing: String,
        /// Error that the kernel returned.
        #[source]
        source: io::Error,
    },
    /// An entry of an archive that was refused or could not be created.
    #[error("cannot unpack {} of {url} on {}", if entry.is_empty() { "the rest" } else { entry },
        device.display())]
    Unpack {
        /// URL of the archive.
        url: String,
        /// Name of the entry; empty for the archive as a whole.
        entry: String,
        /// Path of the partition.
        device: PathBuf,
        /// Reason for the refusal or failure.
        #[source]
        source: io::Error,
    },
    /// The programs that partition and format disks are not available.
    #[error(
        "the disk tools are missing: {reason}; run `image/artifacts.sh FOLDER agent` on the \
        folder that the box serves"
    )]
    NoTools {
        /// Name of the missing part.
        reason: String,
    },
    /// A description of disks, arrays, volumes and file systems that cannot be applied.
    #[error("cannot use the storage description: {reason}")]
    Storage {
        /// Position and kind of the mistake in the description.
        reason: String,
    },
    /// A program that an action ran and that failed.
    #[error("{program} ended with {status}{}{output}", if output.is_empty() { "" } else { ": " })]
    Program {
        /// Name of the program.
        program: String,
        /// Exit status of the program.
        status: std::process::ExitStatus,
        /// Last lines that the program printed.
        output: String,
    },
    /// The action was stopped on request.
    #[error("the action was stopped")]
    Stopped,
    /// A part of the agent that panicked or ended without a result.
    #[error("{part} ended unexpectedly: {reason}")]
    Crashed {
        /// Name of the part.
        part: &'static str,
        /// Message of the panic.
        reason: String,
    },
}

impl Error {
    /// Returns a closure for `map_err` that wraps an error in [`Error::Io`] with the operation
    /// `doing`.
    pub fn io<E: Into<io::Error>>(doing: impl Into<String>) -> impl FnOnce(E) -> Self {
        let doing = doing.into();
        move |source| Self::Io { doing, source: source.into() }
    }
}
