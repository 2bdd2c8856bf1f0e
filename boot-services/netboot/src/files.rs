//! Artifact directory: the files that may be served, and how they are opened.
//!
//! ```text
//! ROOT/ipxe/     loaders: undionly.kpxe, ipxe.efi, snponly.efi …    TFTP and /ipxe/binary/
//! ROOT/agent/    the agent's kernel and initramfs                   /agent/, also by TFTP
//! ROOT/images/   disk images                                        /images/
//! ROOT/iso/      media for BMCs to mount                            /iso/
//! ```

use std::fmt;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use artifact_cache::{Blob, Digest};
use tokio::fs::File;
use tokio::io::AsyncReadExt;

use crate::loader::is_plain;

pub(crate) mod range;

/// Maximum size in bytes of a file that TFTP serves from memory. A unified kernel image fits.
pub const MAX_LOADED: u64 = 64 << 20;

/// Maximum number of components in a path below one of the directory's folders.
const MAX_DEPTH: usize = 8;

/// The artifact directory. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Files {
    root: Arc<Path>,
}

/// Folder of the artifact directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ArtifactFolder {
    /// `ipxe/`: boot loaders.
    Loaders,
    /// `agent/`: kernel and initramfs of the agent.
    Agent,
    /// `images/`: disk images.
    Images,
    /// `iso/`: media for BMCs.
    Iso,
}

/// An open regular file.
pub(crate) struct OpenFile<F> {
    pub(crate) file: F,
    pub(crate) size: u64,
    pub(crate) tag: Tag,
}

/// Version of a file's content, from which its entity tag is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Tag {
    /// Metadata of the file; as reliable as the file system's times.
    Stat { size: u64, seconds: i64, nanos: i64, inode: u64 },
    /// Digest of the content, for files of the cache. The cache stores the time of the last use as
    /// a blob's modification time, so metadata would give another tag after each use.
    Content(Digest),
}

impl Files {
    /// Uses the artifact directory at `root`, which need not exist yet.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into().into() }
    }

    /// Returns the path of `name`; `None` if the name could lead out of the folder. Symbolic links
    /// are followed, because only the box's owner can create one in the directory.
    pub fn path(&self, folder: ArtifactFolder, name: &str) -> Option<PathBuf> {
        let mut path = self.folder(folder);
        let mut depth = 0;
        for part in name.split('/') {
            depth += 1;
            if depth > MAX_DEPTH || !is_plain(part) {
                return None;
            }
            path.push(part);
        }
        Some(path)
    }

    /// Returns the path of a folder.
    pub fn folder(&self, folder: ArtifactFolder) -> PathBuf {
        self.root.join(match folder {
            ArtifactFolder::Loaders => "ipxe",
            ArtifactFolder::Agent => "agent",
            ArtifactFolder::Images => "images",
            ArtifactFolder::Iso => "iso",
        })
    }

    /// Opens a file for streaming on a thread for blocking work.
    pub(crate) async fn open(
        &self,
        folder: ArtifactFolder,
        name: &str,
    ) -> io::Result<OpenFile<File>> {
        let path = self.path(folder, name).ok_or(io::ErrorKind::NotFound)?;
        let opened = tokio::task::spawn_blocking(move || OpenFile::at(&path)).await;
        let OpenFile { file, size, tag } = opened.map_err(io::Error::other)??;
        Ok(OpenFile { file: File::from_std(file), size, tag })
    }

    /// Opens a file on the calling thread, for servers of thousands of requests a second. Looking
    /// up a folder that is not in the kernel's cache reads the disk once.
    pub(crate) fn open_here(
        &self,
        folder: ArtifactFolder,
        name: &str,
    ) -> io::Result<OpenFile<std::fs::File>> {
        OpenFile::at(&self.path(folder, name).ok_or(io::ErrorKind::NotFound)?)
    }
}

impl OpenFile<std::fs::File> {
    /// Opens a complete file of the cache.
    pub(crate) fn blob(blob: &Blob) -> io::Result<Self> {
        let opened = Self::at(&blob.path)?;
        Ok(Self { tag: Tag::Content(blob.digest), ..opened })
    }

    fn at(path: &Path) -> io::Result<Self> {
        // Without O_NONBLOCK, opening a pipe would block until its other end is open. Regular files
        // ignore the flag.
        let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
        let mut options = std::fs::OpenOptions::new();
        let file = options.read(true).custom_flags(flags).open(path).map_err(missing)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(Self { file, size: metadata.len(), tag: Tag::of(&metadata) })
    }
}

impl OpenFile<File> {
    /// Reads the whole file; a file larger than [`MAX_LOADED`] is an error.
    pub(crate) async fn load(self) -> io::Result<Vec<u8>> {
        if self.size > MAX_LOADED {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let mut content = Vec::with_capacity(usize::try_from(self.size).unwrap_or(0));
        self.file.take(MAX_LOADED).read_to_end(&mut content).await?;
        Ok(content)
    }
}

impl Tag {
    fn of(metadata: &Metadata) -> Self {
        Self::Stat {
            size: metadata.len(),
            seconds: metadata.mtime(),
            nanos: metadata.mtime_nsec(),
            inode: metadata.ino(),
        }
    }
}

/// Format of an HTTP entity tag (RFC 9110 section 8.8.3), quotes included.
impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stat { size, seconds, nanos, inode } => {
                write!(f, "\"{size:x}-{seconds:x}-{nanos:x}-{inode:x}\"")
            }
            Self::Content(digest) => write!(f, "\"{digest}\""),
        }
    }
}

/// Maps errors that the client's name caused to `NotFound`: the name leads through a file, or no
/// file can have it.
fn missing(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::NotADirectory | io::ErrorKind::InvalidFilename => {
            io::ErrorKind::NotFound.into()
        }
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::{ArtifactFolder, Files};

    #[tokio::test]
    async fn a_name_that_no_file_can_have_is_not_found() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("images")).unwrap();
        std::fs::write(folder.path().join("images/raw"), b"").unwrap();
        let files = Files::new(folder.path());
        files.open(ArtifactFolder::Images, "raw").await.unwrap();
        let pipe = folder.path().join("images/pipe");
        let made = std::process::Command::new("mkfifo").arg(pipe).status().unwrap();
        assert!(made.success());
        for name in ["none", "raw/below", "pipe", &"a".repeat(256)] {
            let error = files.open(ArtifactFolder::Images, name).await.err().unwrap();
            assert_eq!(error.kind(), std::io::ErrorKind::NotFound, "{name}: {error}");
            let error = files.open_here(ArtifactFolder::Images, name).err().unwrap();
            assert_eq!(error.kind(), std::io::ErrorKind::NotFound, "{name}: {error}");
        }
    }

    #[test]
    fn no_name_leads_out_of_its_shelf() {
        let files = Files::new("/srv");
        let inside = files.path(ArtifactFolder::Images, "debian/12.raw.zst");
        assert_eq!(inside.unwrap().to_str(), Some("/srv/images/debian/12.raw.zst"));
        for name in ["../x", "a/../../x", "/etc/passwd", "a//b", "", ".", "a/.b", "a\0"] {
            assert_eq!(files.path(ArtifactFolder::Images, name), None, "{name:?}");
        }
        assert_eq!(files.path(ArtifactFolder::Images, &"a/".repeat(9)), None);
    }
}
