//! Archive in the tar format, with GNU's encoding of long names. Only regular files.
//!
//! The crate `tar` encodes and decodes headers. Its reader is not used: that reader loads a long
//! name of any size into memory, and its errors look like stream errors.

use std::io::{Read, Write};

use tar::{Builder, EntryType, Header};

use crate::Error;
use crate::part::PATH_BYTES_MAX;

/// Maximum size of an entry in bytes. An object of the API has at most 3 MiB.
pub const ENTRY_BYTES_MAX: usize = 8 << 20;
/// Maximum number of entries of an archive.
pub const ENTRIES_MAX: u64 = 500_000;

const BLOCK: usize = 512;
const FILE_MODE: u32 = 0o600;

/// Writer of entries to a tar archive.
pub struct TarWriter<W: Write>(Builder<W>);

impl<W: Write> TarWriter<W> {
    pub fn new(out: W) -> Self {
        Self(Builder::new(out))
    }

    /// Writes a regular file. `seconds` is the modification time as Unix time.
    pub fn add(&mut self, name: &str, seconds: u64, content: &[u8]) -> Result<(), Error> {
        let mut header = Header::new_gnu();
        header.set_entry_type(EntryType::Regular);
        header.set_mode(FILE_MODE);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(seconds);
        header.set_size(content.len() as u64);
        self.0.append_data(&mut header, name, content).map_err(Error::write)
    }

    pub fn finish(self) -> Result<W, Error> {
        self.0.into_inner().map_err(Error::write)
    }
}

/// Reader of entries from a tar archive.
pub struct TarReader<R> {
    input: R,
    entries: u64,
}

impl<R: Read> TarReader<R> {
    pub fn new(input: R) -> Self {
        Self { input, entries: 0 }
    }

    /// Returns the name and content of the next file, or `None` at the end of the archive.
    pub fn next(&mut self) -> Result<Option<(String, Vec<u8>)>, Error> {
        let mut long = None;
        loop {
            let Some(header) = self.header()? else {
                return match long {
                    None => Ok(None),
                    Some(_) => Err(Error::damaged("its archive has a long name without a file")),
                };
            };
            let (name, size) = (text(&header.path_bytes())?, size(&header)?);
            let kind = header.entry_type();
            if kind.is_gnu_longname() && long.is_none() {
                if size > PATH_BYTES_MAX + 1 {
                    return Err(Error::damaged("its archive has a name that is too long"));
                }
                let mut name = self.content(size)?;
                while name.last() == Some(&0) {
                    name.pop();
                }
                long = Some(text(&name)?);
                continue;
            }
            if !kind.is_file() {
                return Err(Error::damaged(format!("{name:?} in its archive is not a file")));
            }
            self.entries += 1;
            if self.entries > ENTRIES_MAX {
                return Err(Error::too_many_entries());
            }
            let content = self.content(size)?;
            return Ok(Some((long.unwrap_or(name), content)));
        }
    }

    /// Returns the stream after the end of the archive.
    pub fn into_inner(self) -> R {
        self.input
    }

    /// Reads a header. Returns `None` for the block of zeros that ends an archive.
    fn header(&mut self) -> Result<Option<Header>, Error> {
        let mut header = Header::new_old();
        self.input.read_exact(header.as_mut_bytes()).map_err(Error::read)?;
        if header.as_bytes() == &[0; BLOCK] {
            return Ok(None);
        }
        let known = header.as_ustar().is_some() || header.as_gnu().is_some();
        let mut summed = header.clone();
        summed.set_cksum();
        match (header.cksum(), summed.cksum()) {
            (Ok(found), Ok(right)) if known && found == right => Ok(Some(header)),
            _ => Err(no_entry()),
        }
    }

    /// Reads `size` bytes of content. The buffer grows with the received bytes, so a false size
    /// costs no memory.
    fn content(&mut self, size: usize) -> Result<Vec<u8>, Error> {
        let padded = size.next_multiple_of(BLOCK);
        let mut content = Vec::new();
        let mut part = self.input.by_ref().take(padded as u64);
        part.read_to_end(&mut content).map_err(Error::read)?;
        if content.len() < padded {
            return Err(Error::Truncated);
        }
        content.truncate(size);
        Ok(content)
    }
}

/// Returns the size of the entry. A size above [`ENTRY_BYTES_MAX`] is an error.
fn size(header: &Header) -> Result<usize, Error> {
    let size = header.entry_size().map_err(|_| no_entry())?;
    let limit = || stdx::bytes(ENTRY_BYTES_MAX as u64);
    let size = usize::try_from(size).ok().filter(|size| *size <= ENTRY_BYTES_MAX);
    size.ok_or_else(|| Error::TooLarge { limit: format!("{} in one file", limit()) })
}

fn no_entry() -> Error {
    Error::damaged("a header in its archive is not valid")
}

fn text(bytes: &[u8]) -> Result<String, Error> {
    String::from_utf8(bytes.to_vec()).map_err(|_| Error::damaged("a file name is not UTF-8"))
}
