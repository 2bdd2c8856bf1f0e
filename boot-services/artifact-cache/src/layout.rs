//! Layout of the cache's folder on disk.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::eviction::{AbandonedPart, CachedFile, Space};
use super::{Checksum, Digest, RemoteFile, Volume};
use crate::Error;

/// Maximum bytes of a stored URL or entity tag.
const MAX_NOTE: u64 = 8 << 10;
/// Age after which a part without a running download is deleted: seven days.
const STALE: Duration = Duration::from_secs(7 * 24 * 3600);
/// File extension of a part that is being removed.
const REMOVED: &str = "removed";

pub(super) struct Layout {
    root: PathBuf,
    volume: Arc<dyn Volume>,
}

impl Layout {
    pub(super) fn open(root: PathBuf, volume: Arc<dyn Volume>) -> Result<Self, Error> {
        for folder in ["blobs/sha256", "origins", "partial"] {
            let path = root.join(folder);
            fs::create_dir_all(&path).map_err(at(&path))?;
        }
        let now = SystemTime::now();
        for entry in entries(&root.join("partial")) {
            let changed = entry.metadata().and_then(|metadata| metadata.modified());
            let age = changed.ok().and_then(|changed| now.duration_since(changed).ok());
            let is_removed = entry.path().extension().is_some_and(|it| it == REMOVED);
            if is_removed || age.is_some_and(|age| age > STALE) {
                // A failed removal is repeated at the next start.
                let _ = fs::remove_file(entry.path());
            }
        }
        Ok(Self { root, volume })
    }

    pub(super) fn blob(&self, digest: Digest) -> PathBuf {
        self.root.join("blobs/sha256").join(digest.hex())
    }

    /// Returns the path of a file's part: the bytes that have arrived.
    pub(super) fn part_path(&self, key: &str) -> PathBuf {
        self.root.join("partial").join(key)
    }

    /// Returns the path of the entity tag of a part.
    pub(super) fn tag_path(&self, key: &str) -> PathBuf {
        self.part_path(key).with_extension("tag")
    }

    /// Returns the size of the file in bytes, and records a use. `None`: the file is not in the
    /// cache.
    pub(super) fn touch(&self, digest: Digest) -> Option<u64> {
        let file = File::options().append(true).open(self.blob(digest)).ok()?;
        // A failure only makes the order of eviction less exact.
        let _ = file.set_modified(SystemTime::now());
        file.metadata().ok().map(|metadata| metadata.len())
    }

    /// Returns the digest of the file: its checksum, or else the digest of the last download from
    /// its URL. The file need not be in the cache.
    pub(super) fn digest(&self, remote: &RemoteFile) -> Option<Digest> {
        match remote.checksum {
            Some(Checksum::Sha256(digest)) => Some(digest),
            _ => self.origin(remote),
        }
    }

    fn origin(&self, remote: &RemoteFile) -> Option<Digest> {
        let (digest, url) = origin(&read_note(&self.origin_path(remote))?)?;
        (url == remote.url).then_some(digest)
    }

    /// Moves a complete file durably to its final path. The folder of complete files never has an
    /// incomplete one.
    pub(super) fn publish(
        &self,
        remote: &RemoteFile,
        partial: &Path,
        digest: Digest,
    ) -> Result<(), Error> {
        let blob = self.blob(digest);
        fs::rename(partial, &blob).map_err(at(&blob))?;
        let folder = self.root.join("blobs/sha256");
        File::open(&folder).and_then(|folder| folder.sync_all()).map_err(at(&folder))?;
        write_note(&self.origin_path(remote), &format!("{digest} {}\n", remote.url))
    }

    /// Removes complete files, and the notes about their origins.
    pub(super) fn remove(&self, digests: &[Digest]) {
        if digests.is_empty() {
            return;
        }
        for digest in digests {
            let path = self.blob(*digest);
            if let Err(error) = fs::remove_file(&path) {
                let path = path.display();
                tracing::warn!(%path, %error, "a cached file could not be removed");
            }
        }
        for entry in entries(&self.root.join("origins")) {
            let note = read_note(&entry.path());
            if note.and_then(|note| origin(&note)).is_some_and(|(it, _)| digests.contains(&it)) {
                // A note without its file is ignored.
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    /// Returns all parts, including those of running downloads.
    pub(super) fn parts(&self) -> Vec<AbandonedPart> {
        let parts = entries(&self.root.join("partial")).filter_map(|entry| {
            let key = entry.file_name().into_string().ok()?;
            let metadata = entry.metadata().ok()?;
            let last_written = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            let is_part = stdx::unhex(&key).is_some();
            let part = AbandonedPart { key, size: metadata.len(), last_written, needed: false };
            is_part.then_some(part)
        });
        parts.collect()
    }

    /// Renames a part so that later downloads of its file do not use it, which is fast for any
    /// size. [`Layout::remove_part`] then frees the space.
    pub(super) fn set_part_aside(&self, key: &str) -> io::Result<PathBuf> {
        let path = self.part_path(key);
        let aside = path.with_extension(REMOVED);
        fs::rename(&path, &aside)?;
        // A tag without its part is harmless.
        let _ = fs::remove_file(self.tag_path(key));
        Ok(aside)
    }

    /// Removes a part that was set aside. A failed removal is repeated at the next start.
    pub(super) fn remove_part(aside: &Path) {
        if let Err(error) = fs::remove_file(aside) {
            let path = aside.display();
            tracing::warn!(%path, %error, "a part of a download could not be removed");
        }
    }

    /// Returns all complete files.
    pub(super) fn list(&self) -> Vec<CachedFile> {
        let notes = entries(&self.root.join("origins"));
        let notes = notes.filter_map(|entry| read_note(&entry.path()));
        let mut origins: HashMap<Digest, String> = notes.filter_map(|note| origin(&note)).collect();
        let files = entries(&self.root.join("blobs/sha256")).filter_map(|entry| {
            let bytes = stdx::unhex(entry.file_name().to_str()?)?;
            let digest = Digest(bytes.try_into().ok()?);
            let metadata = entry.metadata().ok()?;
            let last_used = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            let origin = origins.remove(&digest).unwrap_or_default();
            Some(CachedFile::of(digest, metadata.len(), last_used, origin))
        });
        files.collect()
    }

    /// Returns the size and the use of the partition.
    pub(super) fn space(&self) -> Result<Space, Error> {
        self.volume.space(&self.root).map_err(at(&self.root))
    }

    fn origin_path(&self, remote: &RemoteFile) -> PathBuf {
        self.root.join("origins").join(remote.key())
    }
}

/// Parses a note about a file's origin: `sha256:<hex> <url>`.
fn origin(note: &str) -> Option<(Digest, String)> {
    let (digest, url) = note.trim_end().split_once(' ')?;
    match digest.parse() {
        Ok(Checksum::Sha256(digest)) => Some((digest, url.to_owned())),
        _ => None,
    }
}

fn entries(folder: &Path) -> impl Iterator<Item = fs::DirEntry> + use<> {
    fs::read_dir(folder).into_iter().flatten().flatten()
}

pub(super) fn read_note(path: &Path) -> Option<String> {
    use std::io::Read as _;
    let mut text = String::new();
    File::open(path).ok()?.take(MAX_NOTE).read_to_string(&mut text).ok()?;
    Some(text)
}

pub(super) fn write_note(path: &Path, text: &str) -> Result<(), Error> {
    let part = path.with_extension("part");
    let write = || {
        let mut file = File::create(&part)?;
        file.write_all(text.as_bytes())?;
        fs::rename(&part, path)
    };
    write().map_err(at(path))
}

pub(super) fn at(path: &Path) -> impl Fn(io::Error) -> Error {
    move |source| Error::Artifact { path: path.to_owned(), source }
}
