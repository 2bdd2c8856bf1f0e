//! The cache's folders.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::room::{Held, Space};
use super::{Checksum, Digest, Wanted};
use crate::Error;

/// The longest URL or entity tag that is read back.
const MAX_NOTE: u64 = 8 << 10;
/// A download that nobody went on with for so long is given up.
const STALE: Duration = Duration::from_secs(7 * 24 * 3600);

pub(super) struct Shelf {
    root: PathBuf,
}

impl Shelf {
    pub(super) fn open(root: PathBuf) -> Result<Self, Error> {
        for folder in ["blobs/sha256", "origins", "partial"] {
            let path = root.join(folder);
            fs::create_dir_all(&path).map_err(at(&path))?;
        }
        let now = SystemTime::now();
        for entry in entries(&root.join("partial")) {
            let changed = entry.metadata().and_then(|metadata| metadata.modified());
            let age = changed.ok().and_then(|changed| now.duration_since(changed).ok());
            if age.is_some_and(|age| age > STALE) {
                // Tried again at the next start.
                let _ = fs::remove_file(entry.path());
            }
        }
        Ok(Self { root })
    }

    pub(super) fn blob(&self, digest: Digest) -> PathBuf {
        self.root.join("blobs/sha256").join(digest.hex())
    }

    /// What has arrived of a file, and the entity tag that it had then.
    pub(super) fn partial(&self, key: &str) -> (PathBuf, PathBuf) {
        let path = self.root.join("partial").join(key);
        let tag = path.with_extension("tag");
        (path, tag)
    }

    /// Bytes of the file, which is wanted now; `None` when it is not here.
    pub(super) fn touch(&self, digest: Digest) -> Option<u64> {
        let file = File::options().append(true).open(self.blob(digest)).ok()?;
        // The order of eviction suffers, if anything.
        let _ = file.set_modified(SystemTime::now());
        file.metadata().ok().map(|metadata| metadata.len())
    }

    /// What the file is: by its checksum, else by what its URL gave. It need not be here.
    pub(super) fn digest(&self, wanted: &Wanted) -> Option<Digest> {
        match wanted.checksum {
            Some(Checksum::Sha256(digest)) => Some(digest),
            _ => self.origin(wanted),
        }
    }

    fn origin(&self, wanted: &Wanted) -> Option<Digest> {
        let note = read_note(&self.origin_path(wanted))?;
        let (digest, url) = note.split_once(' ')?;
        if url.trim_end() != wanted.url {
            return None;
        }
        match digest.parse() {
            Ok(Checksum::Sha256(digest)) => Some(digest),
            _ => None,
        }
    }

    /// A file is whole: it moves to its place, durably. What stands in the shelf is never half.
    pub(super) fn publish(
        &self,
        wanted: &Wanted,
        partial: &Path,
        digest: Digest,
    ) -> Result<(), Error> {
        let blob = self.blob(digest);
        fs::rename(partial, &blob).map_err(at(&blob))?;
        let folder = self.root.join("blobs/sha256");
        File::open(&folder).and_then(|folder| folder.sync_all()).map_err(at(&folder))?;
        write_note(&self.origin_path(wanted), &format!("{digest} {}\n", wanted.url))
    }

    pub(super) fn remove(&self, digest: Digest) {
        let path = self.blob(digest);
        if let Err(error) = fs::remove_file(&path) {
            tracing::warn!(path = %path.display(), %error, "a cached file could not be removed");
        }
        let name = digest.to_string();
        for entry in entries(&self.root.join("origins")) {
            if read_note(&entry.path()).is_some_and(|note| note.starts_with(&name)) {
                // A note without its file means nothing.
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    pub(super) fn list(&self) -> Vec<Held> {
        let origins: Vec<String> = entries(&self.root.join("origins"))
            .filter_map(|entry| read_note(&entry.path()))
            .collect();
        let origin = |digest: Digest| {
            let of = |note: &String| {
                let (name, url) = note.trim_end().split_once(' ')?;
                (name == digest.to_string()).then(|| url.to_owned())
            };
            origins.iter().find_map(of).unwrap_or_default()
        };
        let held = entries(&self.root.join("blobs/sha256")).filter_map(|entry| {
            let bytes = stdx::unhex(entry.file_name().to_str()?)?;
            let digest = Digest(bytes.try_into().ok()?);
            let metadata = entry.metadata().ok()?;
            let last_used = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            Some(Held::of(digest, metadata.len(), last_used, origin(digest)))
        });
        held.collect()
    }

    /// How full the partition is.
    pub(super) fn space(&self) -> Result<Space, Error> {
        let found = rustix::fs::statvfs(&self.root)
            .map_err(|error| Error::Artifact { path: self.root.clone(), source: error.into() })?;
        let capacity = found.f_blocks.saturating_mul(found.f_frsize);
        let free = found.f_bavail.saturating_mul(found.f_frsize);
        Ok(Space { capacity, used: capacity.saturating_sub(free) })
    }

    fn origin_path(&self, wanted: &Wanted) -> PathBuf {
        self.root.join("origins").join(wanted.key())
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
