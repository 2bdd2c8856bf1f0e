//! The unpatched file of a medium on disk, and the placeholders found in it.

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::OnceCell;

use super::magic;

/// Maximum files whose placeholder offsets are remembered; a box serves fewer.
const MAX_FILES: usize = 64;

/// Version of a file's content, as reliable as the file system's times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Version {
    size: u64,
    seconds: i64,
    nanos: i64,
    inode: u64,
}

/// Open file. Reads take an offset, so that many can run concurrently.
#[derive(Debug, Clone)]
pub(super) struct Original {
    file: Arc<File>,
    path: Arc<Path>,
    pub(super) version: Version,
}

impl Original {
    /// Opens a regular file; anything else is not found.
    pub(super) fn open(path: PathBuf) -> io::Result<Self> {
        let missing = || io::Error::from(io::ErrorKind::NotFound);
        // Checked before opening, because opening a pipe blocks until its other end is open.
        if !std::fs::metadata(&path)?.is_file() {
            return Err(missing());
        }
        let file = File::open(&path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(missing());
        }
        let version = Version {
            size: metadata.len(),
            seconds: metadata.mtime(),
            nanos: metadata.mtime_nsec(),
            inode: metadata.ino(),
        };
        Ok(Self { file: Arc::new(file), path: path.into(), version })
    }

    /// Returns the size of the file in bytes.
    pub(super) fn size(&self) -> u64 {
        self.version.size
    }

    /// Reads `length` bytes from offset `at`; blocks.
    pub(super) fn read(&self, at: u64, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, at)?;
        Ok(bytes)
    }
}

/// Format for an entity tag.
impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { size, seconds, nanos, inode } = self;
        write!(f, "{size:x}-{seconds:x}-{nanos:x}-{inode:x}")
    }
}

type Places = Arc<[u64]>;
type PlacesByFile = HashMap<(Arc<Path>, Version), Arc<OnceCell<Places>>>;

/// Placeholders of each file, searched once for each version.
#[derive(Debug, Default)]
pub(super) struct Placeholders(Mutex<PlacesByFile>);

impl Placeholders {
    /// Returns the offsets of the placeholders in `original`. The first caller reads the whole
    /// file; concurrent callers wait for the same search.
    pub(super) async fn places(&self, original: &Original) -> io::Result<Places> {
        let cell = self.cell(original);
        let search = || async {
            let reader = original.clone();
            let found = tokio::task::spawn_blocking(move || {
                magic::places(Sequential { original: &reader, at: 0 }, magic::SEARCHED)
            });
            Ok(Places::from(found.await.map_err(io::Error::other)??))
        };
        cell.get_or_try_init(search).await.cloned()
    }

    fn cell(&self, original: &Original) -> Arc<OnceCell<Places>> {
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (Arc::clone(&original.path), original.version);
        if !files.contains_key(&key) {
            files.retain(|(path, _), _| *path != key.0);
            if files.len() >= MAX_FILES {
                files.clear();
            }
        }
        Arc::clone(files.entry(key).or_default())
    }
}

/// Sequential reader of the file with its own position.
struct Sequential<'a> {
    original: &'a Original,
    at: u64,
}

impl io::Read for Sequential<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.original.file.read_at(buffer, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}
