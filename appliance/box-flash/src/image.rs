//! Image file as a stream: decompressed if necessary, with the checksum of the file.

use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lzma_rust2::XzReader;
use sha2::{Digest as _, Sha256};

use crate::error::FlashError;
use crate::file::{text, unread};
use crate::map::{MAP_BYTES_MAX, Map};
use crate::release::{Keys, Sums};

const BUFFER: usize = 1 << 18;

/// Image file, with the data of the files beside it.
#[derive(Debug)]
pub struct Image {
    path: PathBuf,
    /// Size of the file in bytes.
    pub size: u64,
    packed: bool,
    /// Ranges of the image to write.
    pub map: Map,
    /// True if `map` was read from a block map.
    pub mapped: bool,
    /// SHA-256 of the file, from SHA256SUMS.
    wanted: Option<String>,
    /// True if one of the given keys signed SHA256SUMS.
    pub signed: bool,
}

impl Image {
    /// Opens the description of the image at `path`, with block map and checksum if these files are
    /// beside it. With `keys`, the checksum must exist and be signed.
    ///
    /// # Errors
    /// A file cannot be read or is not valid.
    pub fn find(path: &Path, keys: Option<&Keys>) -> Result<Self, FlashError> {
        let size = fs::metadata(path).map_err(|source| unread(path, source))?.len();
        let packed = path.extension().is_some_and(|ending| ending == "xz");
        let bare = if packed { path.with_extension("") } else { path.to_owned() };
        let map = bare.with_added_extension("bmap");
        let map_text = text(&map, MAP_BYTES_MAX)?;
        let sums = Sums::beside(path, keys)?;
        let wanted = sums.of(path)?;
        let (map, mapped) = match map_text {
            Some(text) => {
                // Half of a good image, by a map that leaves the rest out, is none.
                let found = stdx::hex(&Sha256::digest(&text));
                agrees(&map, sums.of(&map)?.as_ref(), &found)?;
                let file = map.display().to_string();
                (Map::read(&text).map_err(|why| FlashError::Content { file, why })?, true)
            }
            None => (Map::whole((!packed).then_some(size)), false),
        };
        let signed = sums.signed;
        Ok(Self { path: path.to_owned(), size, packed, map, mapped, wanted, signed })
    }

    /// Returns true if SHA256SUMS lists the file.
    pub fn is_summed(&self) -> bool {
        self.wanted.is_some()
    }

    /// Opens the image as a stream; `read` counts the bytes read from the file.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn open(&self, read: &Arc<AtomicU64>) -> Result<Stream, FlashError> {
        let file = File::open(&self.path).map_err(|source| unread(&self.path, source))?;
        let file = HashingFile { file, sum: Sha256::new(), read: Arc::clone(read) };
        let file = BufReader::with_capacity(BUFFER, file);
        Ok(match self.packed {
            true => Stream::Packed(Box::new(XzReader::new(file, true))),
            false => Stream::Bare(file),
        })
    }

    /// Compares the checksum of the file, after the stream was read to its end.
    ///
    /// # Errors
    /// The checksum differs from the checksum in SHA256SUMS.
    pub fn check(&self, stream: Stream) -> Result<(), FlashError> {
        let mut file = match stream {
            Stream::Packed(reader) => reader.into_inner(),
            Stream::Bare(file) => file,
        };
        let rest = io::copy(&mut file, &mut io::sink());
        rest.map_err(|source| unread(&self.path, source))?;
        let found = stdx::hex(&file.into_inner().sum.finalize());
        agrees(&self.path, self.wanted.as_ref(), &found)
    }
}

pub enum Stream {
    /// File compressed with xz.
    Packed(Box<XzReader<BufReader<HashingFile>>>),
    /// File that is not compressed.
    Bare(BufReader<HashingFile>),
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Packed(reader) => reader.read(buffer),
            Self::Bare(reader) => reader.read(buffer),
        }
    }
}

/// File whose SHA-256 is computed while it is read.
pub struct HashingFile {
    file: File,
    sum: Sha256,
    read: Arc<AtomicU64>,
}

impl Read for HashingFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.sum.update(&buffer[..count]);
        self.read.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

/// Compares a file's checksum `found` with the expected checksum, if there is one.
fn agrees(path: &Path, wanted: Option<&String>, found: &str) -> Result<(), FlashError> {
    match wanted {
        Some(wanted) if wanted != found => Err(FlashError::Content {
            file: path.display().to_string(),
            why: format!("SHA256SUMS has the checksum {wanted}, the file has {found}"),
        }),
        _ => Ok(()),
    }
}
