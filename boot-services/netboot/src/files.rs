//! The artifact directory: what may be served and how it is opened.
//!
//! ```text
//! ROOT/ipxe/     loaders: undionly.kpxe, ipxe.efi, snponly.efi …    TFTP and /ipxe/binary/
//! ROOT/agent/    the agent's kernel and initramfs                   /agent/
//! ROOT/images/   disk images                                        /images/
//! ```

use std::fmt;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::fs::File;
use tokio::io::AsyncReadExt;

use crate::loader::is_plain;

/// The largest file that is served from memory (TFTP): a unified kernel image fits.
pub const MAX_LOADED: u64 = 64 << 20;

/// Folders below a shelf.
const MAX_DEPTH: usize = 8;

/// The artifact directory. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Files {
    root: Arc<Path>,
}

/// One of the directory's folders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shelf {
    /// `ipxe/`.
    Loaders,
    /// `agent/`.
    Agent,
    /// `images/`.
    Images,
}

/// An open regular file.
pub(crate) struct Opened {
    pub(crate) file: File,
    pub(crate) size: u64,
    pub(crate) tag: Tag,
}

/// Tells two contents of one name apart, as far as the file system can: size, time, inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Tag {
    size: u64,
    seconds: i64,
    nanos: i64,
    inode: u64,
}

impl Files {
    /// The directory at `root`; it need not exist yet.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into().into() }
    }

    /// Where `name` would be. `None`: a name that could lead out of the shelf. Symbolic links are
    /// followed: only the box's owner can make one here.
    pub fn path(&self, shelf: Shelf, name: &str) -> Option<PathBuf> {
        let mut path = self.shelf(shelf);
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

    /// The folder of a shelf.
    pub fn shelf(&self, shelf: Shelf) -> PathBuf {
        self.root.join(match shelf {
            Shelf::Loaders => "ipxe",
            Shelf::Agent => "agent",
            Shelf::Images => "images",
        })
    }

    /// Opens a file for streaming.
    pub(crate) async fn open(&self, shelf: Shelf, name: &str) -> io::Result<Opened> {
        let path = self.path(shelf, name).ok_or(io::ErrorKind::NotFound)?;
        // Asked before opening, because opening a pipe waits for its other end.
        regular(&tokio::fs::metadata(&path).await.map_err(missing)?)?;
        let file = File::open(&path).await.map_err(missing)?;
        let metadata = file.metadata().await?;
        regular(&metadata)?;
        Ok(Opened { file, size: metadata.len(), tag: Tag::of(&metadata) })
    }
}

impl Opened {
    /// Reads the whole file, at most [`MAX_LOADED`] bytes.
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
        Self {
            size: metadata.len(),
            seconds: metadata.mtime(),
            nanos: metadata.mtime_nsec(),
            inode: metadata.ino(),
        }
    }
}

/// As an HTTP entity tag (RFC 9110 section 8.8.3), quotes included.
impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { size, seconds, nanos, inode } = self;
        write!(f, "\"{size:x}-{seconds:x}-{nanos:x}-{inode:x}\"")
    }
}

/// A name that leads through a file, or that no file can have, is no fault of the box's.
fn missing(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::NotADirectory | io::ErrorKind::InvalidFilename => {
            io::ErrorKind::NotFound.into()
        }
        _ => error,
    }
}

fn regular(metadata: &Metadata) -> io::Result<()> {
    if metadata.is_file() { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) }
}

#[cfg(test)]
mod tests {
    use super::{Files, Shelf};

    #[tokio::test]
    async fn a_name_that_no_file_can_have_is_not_found() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("images")).unwrap();
        std::fs::write(folder.path().join("images/raw"), b"").unwrap();
        let files = Files::new(folder.path());
        files.open(Shelf::Images, "raw").await.unwrap();
        for name in ["none", "raw/below", &"a".repeat(256)] {
            let error = files.open(Shelf::Images, name).await.err().unwrap();
            assert_eq!(error.kind(), std::io::ErrorKind::NotFound, "{name}: {error}");
        }
    }

    #[test]
    fn no_name_leads_out_of_its_shelf() {
        let files = Files::new("/srv");
        let inside = files.path(Shelf::Images, "debian/12.raw.zst");
        assert_eq!(inside.unwrap().to_str(), Some("/srv/images/debian/12.raw.zst"));
        for name in ["../x", "a/../../x", "/etc/passwd", "a//b", "", ".", "a/.b", "a\0"] {
            assert_eq!(files.path(Shelf::Images, name), None, "{name:?}");
        }
        assert_eq!(files.path(Shelf::Images, &"a/".repeat(9)), None);
    }
}
