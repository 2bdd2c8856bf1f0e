//! The image as a stream: unpacked where it is packed, with the sum of the file as it lies there.

use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lzma_rust2::XzReader;
use sha2::{Digest as _, Sha256};

use super::map::{MAP_BYTES_MAX, Map};
use super::release::{Keys, Sums};
use crate::error::Error;

/// Bytes read from the file at once.
const BUFFER: usize = 1 << 18;

/// An image, and what lies beside it.
#[derive(Debug)]
pub struct Image {
    path: PathBuf,
    /// Bytes of the file.
    pub size: u64,
    packed: bool,
    /// What of it is written.
    pub map: Map,
    /// Whether that is what a block map says.
    pub mapped: bool,
    /// The file's SHA-256, as the release's list has it.
    wanted: Option<String>,
    /// Whether somebody signed that list whose key one has.
    pub signed: bool,
}

impl Image {
    /// The image at `path` with its map and its sum, where they lie beside it. With `keys` the sum
    /// must, and be signed.
    ///
    /// # Errors
    /// A file that cannot be read, or is not what it should be.
    pub fn find(path: &Path, keys: Option<&Keys>) -> Result<Self, Error> {
        let size = fs::metadata(path).map_err(|source| unread(path, source))?.len();
        let packed = path.extension().is_some_and(|ending| ending == "xz");
        let bare = if packed { path.with_extension("") } else { path.to_owned() };
        let map = bare.with_added_extension("bmap");
        let said = text(&map, MAP_BYTES_MAX)?;
        let sums = Sums::beside(path, keys)?;
        let wanted = sums.of(path)?;
        let (map, mapped) = match said {
            Some(text) => {
                // Half of a good image, by a map that leaves the rest out, is none.
                let found = stdx::hex(&Sha256::digest(&text));
                agrees(&map, sums.of(&map)?.as_ref(), &found)?;
                let file = map.display().to_string();
                (Map::read(&text).map_err(|why| Error::Content { file, why })?, true)
            }
            None => (Map::whole((!packed).then_some(size)), false),
        };
        let signed = sums.signed;
        Ok(Self { path: path.to_owned(), size, packed, map, mapped, wanted, signed })
    }

    /// Whether there is a sum to hold the file against.
    pub fn is_summed(&self) -> bool {
        self.wanted.is_some()
    }

    /// Opens it; `read` counts the file's bytes as they are read.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open(&self, read: &Arc<AtomicU64>) -> Result<Stream, Error> {
        let file = File::open(&self.path).map_err(|source| unread(&self.path, source))?;
        let file = Summing { file, sum: Sha256::new(), read: Arc::clone(read) };
        let file = BufReader::with_capacity(BUFFER, file);
        Ok(match self.packed {
            true => Stream::Packed(Box::new(XzReader::new(file, true))),
            false => Stream::Bare(file),
        })
    }

    /// Judges what was read of it: all of it, by now.
    ///
    /// # Errors
    /// It is not the file of the release.
    pub fn check(&self, stream: Stream) -> Result<(), Error> {
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

/// An image that is being read.
pub enum Stream {
    /// In xz.
    Packed(Box<XzReader<BufReader<Summing>>>),
    /// As it is.
    Bare(BufReader<Summing>),
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Packed(reader) => reader.read(buffer),
            Self::Bare(reader) => reader.read(buffer),
        }
    }
}

/// A file that is summed as it is read.
pub struct Summing {
    file: File,
    sum: Sha256,
    read: Arc<AtomicU64>,
}

impl Read for Summing {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.sum.update(&buffer[..count]);
        self.read.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

/// Holds a file's sum against the one that is wanted, if one is.
fn agrees(path: &Path, wanted: Option<&String>, found: &str) -> Result<(), Error> {
    match wanted {
        Some(wanted) if wanted != found => Err(Error::Content {
            file: path.display().to_string(),
            why: format!("SHA256SUMS has the sum {wanted}, the file {found}"),
        }),
        _ => Ok(()),
    }
}

/// At most `limit` bytes of a file's text, if there is such a file.
pub fn text(path: &Path, limit: u64) -> Result<Option<String>, Error> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(|source| unread(path, source))?,
    };
    let mut text = String::new();
    let read = file.take(limit).read_to_string(&mut text);
    read.map_err(|source| unread(path, source))?;
    Ok(Some(text))
}

fn unread(path: &Path, source: io::Error) -> Error {
    Error::Read { file: path.display().to_string(), source }
}
