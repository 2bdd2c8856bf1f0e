//! Errors of the crate. Each text is a sentence for the operator, shown in the workflow's status.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Error of an operation on a disk or of a download.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The container image does not fit into the memory for images.
    #[error("the image {image:?} needs more than {}, which is the free memory for images on this \
        machine", stdx::bytes(*room))]
    ImageTooLarge {
        /// Image name from the template.
        image: String,
        /// Memory limit for images, in bytes.
        room: u64,
    },
    /// A container layer is damaged, or an entry is refused or cannot be created.
    #[error("cannot unpack {} of the layer {url}",
        if entry.is_empty() { "the rest" } else { entry })]
    Layer {
        /// URL of the layer.
        url: String,
        /// Name of the entry; empty if the layer itself is not readable.
        entry: String,
        /// Error of the kernel, or the reason for the refusal.
        #[source]
        source: io::Error,
    },
    /// The URL is invalid or cannot be fetched.
    #[error("cannot fetch {url}: {reason}")]
    Url {
        /// URL without user, password or query.
        url: String,
        /// Reason, as a clause for the message.
        reason: String,
    },
    /// The server responded with an error status that a retry does not change.
    #[error("{url} is refused: {status}")]
    Status {
        /// URL of the request.
        url: String,
        /// HTTP status code and reason, and the server's text if any.
        status: String,
    },
    /// The download or upload failed: no new byte within the timeout, 10 minutes by default.
    #[error("no new data from or to {url} for {}, at offset {}: {reason}",
        stdx::seconds(u64::try_from(waited.as_millis()).unwrap_or(u64::MAX)), stdx::bytes(*offset))]
    GaveUp {
        /// URL of the download.
        url: String,
        /// Number of received bytes.
        offset: u64,
        /// Time since the last new byte.
        waited: Duration,
        /// Error of the last attempt.
        reason: String,
    },
    /// The file on the server changed during the download.
    #[error("{url} changed while it was being read")]
    Changed {
        /// URL of the image.
        url: String,
    },
    /// The server states no length, and the action no checksum: a truncation would not be detected.
    #[error("{url} has no Content-Length and no checksum: a truncation would not be detected")]
    Unbounded {
        /// URL of the image.
        url: String,
    },
    /// The format of the image is not supported.
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
    /// The image is a tar archive, not a disk image.
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
    /// The compressed image is damaged or truncated.
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
    /// The image is larger than the disk.
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
        /// Checksum of the downloaded bytes, not decompressed.
        actual: String,
        /// Expected checksum, from the action.
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
    /// Two lines of the file of checksums match the image's URL equally well, but differ.
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
    /// The image is truncated: its partition table is for a larger disk.
    #[error(
        "the image {url} is truncated: it has {length} bytes, and its partition table is for a \
        disk of {stated} bytes"
    )]
    Short {
        /// URL of the image.
        url: String,
        /// Size of the disk that the partition table is for, in bytes.
        stated: u64,
        /// Length of the image in bytes.
        length: u64,
    },
    /// The disk returned other bytes than were written, in the check after writing.
    #[error("{} returned other data than was written at offset {} (image {url})", disk.display(),
        stdx::bytes(*offset))]
    ReadBack {
        /// URL of the written image.
        url: String,
        /// Path of the disk.
        disk: PathBuf,
        /// Offset of the first 4 MiB buffer that differs, in bytes.
        offset: u64,
    },
    /// The device did not appear in time.
    #[error("{} did not appear within {} s", path.display(), waited.as_secs())]
    NoDisk {
        /// Path of the device.
        path: PathBuf,
        /// Time spent waiting for the device.
        waited: Duration,
    },
    /// The disk setting is invalid, or matches no disk, or several.
    #[error("cannot find the disk {named:?}: {reason}")]
    NoSuchDisk {
        /// Path or selector from the action.
        named: String,
        /// Reason, with the names of the candidates.
        reason: String,
    },
    /// The box refused the disk of a hint, because the workflow used another disk before.
    #[error("cannot use the disk {named:?}: {reason}")]
    OtherDisk {
        /// Path or selector from the action.
        named: String,
        /// Reason that the box returned.
        reason: String,
    },
    /// The action may not write to a preserved disk.
    #[error("refused to write {}: disk {disk} is preserved", path.display())]
    Preserved {
        /// Path of the action's device.
        path: PathBuf,
        /// Kernel name of the preserved disk, below the action's device.
        disk: String,
    },
    /// A selector of `tinbox.preserve` matches no disk, so no disk may be written.
    #[error(
        "refused to write {}: the preserved disk {word} was not found, so it can be any disk of \
         this machine; name it by serialNumber=… or wwn=… in the annotation \
         tinbox.dev/preserve-disks of the Hardware, or connect it", path.display()
    )]
    PreservedUnknown {
        /// Path of the action's device.
        path: PathBuf,
        /// Selector that matches no disk.
        word: String,
    },
    /// The requested erase is not possible, or failed.
    #[error("cannot erase {}: {reason}", path.display())]
    Erase {
        /// Path of the disk.
        path: PathBuf,
        /// Reason, state of the disk, and remedy.
        reason: String,
    },
    /// The disk still has old data after an erase.
    #[error("{} still has data after a wipe by {method}, at offset {}", path.display(),
        stdx::bytes(*offset))]
    NotErased {
        /// Path of the disk.
        path: PathBuf,
        /// Erase method, as WIPE_METHOD names it.
        method: &'static str,
        /// Offset of the sample with old data, in bytes.
        offset: u64,
    },
    /// The path is not a block device.
    #[error("{} is not a block device", path.display())]
    NotBlockDevice {
        /// Path from the action.
        path: PathBuf,
    },
    /// The disk is already open exclusively, or a partition of the disk is mounted.
    #[error("{} is in use: it, or a partition of it, is mounted", path.display())]
    DiskBusy {
        /// Path of the device.
        path: PathBuf,
    },
    /// The agent's kernel does not support the filesystem.
    #[error("cannot mount {fs_type}: the agent's kernel supports only ext4, xfs, btrfs and vfat")]
    FileSystem {
        /// Filesystem type from the action.
        fs_type: String,
    },
    /// A system call failed.
    #[error("cannot {doing}")]
    Io {
        /// Failed operation and its object, as the words after "cannot".
        doing: String,
        /// Error of the kernel.
        #[source]
        source: io::Error,
    },
    /// The archive is damaged, or an entry is refused or cannot be created.
    #[error("cannot unpack {} of {url} on {}", if entry.is_empty() { "the rest" } else { entry },
        device.display())]
    Unpack {
        /// URL of the archive.
        url: String,
        /// Name of the entry; empty if the archive itself is not readable.
        entry: String,
        /// Path of the partition.
        device: PathBuf,
        /// Error of the kernel, or the reason for the refusal.
        #[source]
        source: io::Error,
    },
    /// The tools image, with the programs that partition and format disks, is not available.
    #[error(
        "the disk tools are missing: {reason}; run `image/artifacts.sh FOLDER agent` on the \
        folder that the box serves"
    )]
    NoTools {
        /// Reason, as a clause for the message.
        reason: String,
    },
    /// Invalid storage description, missing array or volume group, or partition that cannot grow.
    #[error("cannot prepare the storage of this machine: {reason}")]
    Storage {
        /// Reason, with the part of the description.
        reason: String,
    },
    /// A program of the action ended with an error status.
    #[error("{program} ended with {status}{}{output}", if output.is_empty() { "" } else { ": " })]
    Program {
        /// Name of the program.
        program: String,
        /// Exit status of the program.
        status: std::process::ExitStatus,
        /// Last lines of the program's output.
        output: String,
    },
    /// The action was stopped by the box or by its timeout.
    #[error("the action was stopped")]
    Stopped,
    /// A task or thread of the agent panicked or ended without a result.
    #[error("{part} ended unexpectedly: {reason}")]
    Crashed {
        /// Description of the task, such as "opening the disk".
        part: &'static str,
        /// Panic message, or the reason of the end.
        reason: String,
    },
}

impl Error {
    /// Returns a closure for `map_err` that builds [`Error::Io`]; `doing` follows "cannot".
    pub fn io<E: Into<io::Error>>(doing: impl Into<String>) -> impl FnOnce(E) -> Self {
        let doing = doing.into();
        move |source| Self::Io { doing, source: source.into() }
    }
}
