//! Storage of manifests on disk, each with the media type from its registry.
//!
//! ```text
//! ROOT/manifests/<hex>    "<media type>\n" and the bytes, named by the reference's SHA-256
//! ```

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::time::SystemTime;

use bytes::Bytes;

use super::document::MANIFEST_BYTES;
use super::{Document, Manifest, Reference};
use crate::Digest;
use crate::Error;
use crate::layout::at;

/// Maximum bytes of all manifests; beyond it the least recently used ones are removed.
const ALL_BYTES: u64 = 64 << 20;
/// Maximum number of manifests.
const ALL: usize = 4096;
/// Maximum length of a media type in bytes.
const MEDIA_TYPE: usize = 255;
/// Media type of a manifest whose registry does not report a valid one.
const UNKNOWN: &str = "application/vnd.oci.image.manifest.v1+json";

pub(super) struct ManifestStore(PathBuf);

impl ManifestStore {
    pub(super) fn open(folder: PathBuf) -> Result<Self, Error> {
        fs::create_dir_all(&folder).map_err(at(&folder))?;
        Ok(Self(folder))
    }

    fn path(&self, reference: &Reference) -> PathBuf {
        self.0.join(Digest::of(reference.to_string().as_bytes()).hex())
    }

    /// Returns the stored manifest. `None`: it is not stored, or does not match its digest.
    pub(super) fn get(&self, reference: &Reference) -> Option<Document> {
        let file = File::options().read(true).append(true).open(self.path(reference)).ok()?;
        let mut bytes = Vec::new();
        let most = (MANIFEST_BYTES + MEDIA_TYPE + 1) as u64;
        (&file).take(most).read_to_end(&mut bytes).ok()?;
        let end = bytes.iter().position(|byte| *byte == b'\n')?;
        let media_type = String::from_utf8(bytes[..end].to_vec()).ok()?;
        let document = Document { bytes: Bytes::from(bytes).slice(end + 1..), media_type };
        // A failure only makes the order of removal less exact.
        let _ = file.set_modified(SystemTime::now());
        let is_right = match &reference.manifest {
            Manifest::Tag(_) => true,
            Manifest::Digest(digest) => document.digest() == *digest,
        };
        is_right.then_some(document)
    }

    pub(super) fn put(&self, reference: &Reference, document: &Document) -> Result<(), Error> {
        let path = self.path(reference);
        let part = path.with_extension("part");
        let write = || {
            let mut file = File::create(&part)?;
            file.write_all(document.media_type.as_bytes())?;
            file.write_all(b"\n")?;
            file.write_all(&document.bytes)?;
            fs::rename(&part, &path)
        };
        write().map_err(at(&path))?;
        self.evict();
        Ok(())
    }

    fn evict(&self) {
        let entries = fs::read_dir(&self.0).into_iter().flatten().flatten();
        let mut files: Vec<_> = entries
            .filter_map(|entry| {
                let metadata = entry.metadata().ok()?;
                Some((metadata.modified().ok()?, metadata.len(), entry.path()))
            })
            .collect();
        files.sort();
        let mut bytes: u64 = files.iter().map(|(_, length, _)| length).sum();
        let mut count = files.len();
        for (_, length, path) in files {
            if bytes <= ALL_BYTES && count <= ALL {
                return;
            }
            // A failed removal is repeated when the next manifest is stored.
            let _ = fs::remove_file(path);
            bytes -= length;
            count -= 1;
        }
    }
}

/// Returns a media type that fits into a header field and into the first line of a file.
pub(super) fn media_type(value: &str) -> String {
    let plain = value.split(';').next().unwrap_or_default().trim();
    let good = !plain.is_empty()
        && plain.len() <= MEDIA_TYPE
        && plain.bytes().all(|byte| byte.is_ascii_graphic());
    if good { plain } else { UNKNOWN }.to_owned()
}
