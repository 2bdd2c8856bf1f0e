//! The archive: ustar as every `tar` reads it (POSIX.1-1988), with GNU's way for long names. Only
//! regular files.
//!
//! ```text
//! block    0     100  name                 100   8  mode, octal       124  12  size, octal
//!          136   12   time, octal          148   8  checksum, octal   156   1  type
//!          257   6    "ustar\0"            263   2  "00"
//! entry    block · content, filled with zeros to 512
//! long     an entry of type L named ././@LongLink whose content is the next entry's name, 0
//! end      two blocks of zeros
//! ```

use std::io::{Read, Write};

use crate::Error;
use crate::part::PATH_BYTES_MAX;

/// Maximum size of an entry in bytes: an object has at most three MiB.
pub const ENTRY_BYTES_MAX: usize = 8 << 20;
/// Maximum number of entries of an archive.
pub const ENTRIES_MAX: u64 = 500_000;

const BLOCK: usize = 512;
const NAME: usize = 100;
const LONG_LINK: &str = "././@LongLink";
const MAGIC: &[u8; 8] = b"ustar\x0000";
/// GNU's form of the magic, in archives that GNU tar made.
const GNU_MAGIC: &[u8; 8] = b"ustar  \0";
const CHECKSUM: std::ops::Range<usize> = 148..156;
const FILE_MODE: u64 = 0o600;

/// Writes entries of a tar archive.
pub struct TarWriter<W>(W);

impl<W: Write> TarWriter<W> {
    pub fn new(out: W) -> Self {
        Self(out)
    }

    /// Writes one file. `seconds` is the Unix time.
    pub fn add(&mut self, name: &str, seconds: u64, content: &[u8]) -> Result<(), Error> {
        if name.len() > NAME {
            let mut long = name.as_bytes().to_vec();
            long.push(0);
            self.entry(LONG_LINK, b'L', 0, &long)?;
        }
        let cut = name.get(..NAME).unwrap_or(name);
        self.entry(cut, b'0', seconds, content)
    }

    fn entry(&mut self, name: &str, kind: u8, seconds: u64, content: &[u8]) -> Result<(), Error> {
        let mut block = [0; BLOCK];
        block[..name.len()].copy_from_slice(name.as_bytes());
        octal(&mut block[100..108], FILE_MODE);
        octal(&mut block[108..116], 0);
        octal(&mut block[116..124], 0);
        octal(&mut block[124..136], content.len() as u64);
        octal(&mut block[136..148], seconds);
        block[156] = kind;
        block[257..265].copy_from_slice(MAGIC);
        let sum = checksum(&block);
        octal(&mut block[148..155], sum);
        block[155] = b' ';
        let fill = [0; BLOCK];
        let rest = content.len().next_multiple_of(BLOCK) - content.len();
        for bytes in [&block[..], content, &fill[..rest]] {
            self.0.write_all(bytes).map_err(Error::write)?;
        }
        Ok(())
    }

    pub fn finish(mut self) -> Result<W, Error> {
        self.0.write_all(&[0; 2 * BLOCK]).map_err(Error::write)?;
        Ok(self.0)
    }
}

/// Writes right-aligned octal digits and a NUL.
fn octal(field: &mut [u8], value: u64) {
    let digits = field.len() - 1;
    let text = format!("{value:0digits$o}");
    let text = text.as_bytes();
    field[..digits].copy_from_slice(&text[text.len() - digits..]);
    field[digits] = 0;
}

/// Returns the sum of all bytes; the bytes of the checksum itself count as spaces.
fn checksum(block: &[u8; BLOCK]) -> u64 {
    let own = |at: &usize| CHECKSUM.contains(at);
    let byte = |(at, byte): (usize, &u8)| if own(&at) { u64::from(b' ') } else { u64::from(*byte) };
    block.iter().enumerate().map(byte).sum()
}

/// Reads entries of a tar archive.
pub struct TarReader<R> {
    input: R,
    entries: u64,
}

impl<R: Read> TarReader<R> {
    pub fn new(input: R) -> Self {
        Self { input, entries: 0 }
    }

    /// Returns the next file; `None` at the end of the archive.
    pub fn next(&mut self) -> Result<Option<(String, Vec<u8>)>, Error> {
        let mut long = None;
        loop {
            let Some(Entry { name, kind, size }) = self.block()? else {
                return match long {
                    None => Ok(None),
                    Some(_) => Err(Error::damaged("a long name without a file")),
                };
            };
            if kind == b'L' && long.is_none() {
                if size > PATH_BYTES_MAX + 1 {
                    return Err(Error::damaged("a name that is too long"));
                }
                let mut name = self.content(size)?;
                while name.last() == Some(&0) {
                    name.pop();
                }
                long = Some(text(&name)?);
                continue;
            }
            if kind != b'0' && kind != 0 {
                return Err(Error::damaged(format!("{name:?} is not a file")));
            }
            self.entries += 1;
            if self.entries > ENTRIES_MAX {
                return Err(Error::too_many_entries());
            }
            let content = self.content(size)?;
            return Ok(Some((long.unwrap_or(name), content)));
        }
    }

    /// Returns the stream behind the end of the archive.
    pub fn into_inner(self) -> R {
        self.input
    }

    fn block(&mut self) -> Result<Option<Entry>, Error> {
        let mut block = [0; BLOCK];
        self.input.read_exact(&mut block).map_err(Error::read)?;
        if block == [0; BLOCK] {
            return Ok(None);
        }
        let wrong = || Error::damaged("its archive lacks an entry");
        let sum = number(&block[CHECKSUM]).ok_or_else(wrong)?;
        let known = [&MAGIC[..], &GNU_MAGIC[..]].contains(&&block[257..265]);
        if sum != checksum(&block) || !known {
            return Err(wrong());
        }
        let size = number(&block[124..136]).ok_or_else(wrong)?;
        let size = usize::try_from(size).ok().filter(|size| *size <= ENTRY_BYTES_MAX);
        let name = text(until_nul(&block[..NAME]))?;
        let limit = || stdx::bytes(ENTRY_BYTES_MAX as u64);
        let size =
            size.ok_or_else(|| Error::TooLarge { limit: format!("{} in one file", limit()) })?;
        Ok(Some(Entry { name, kind: block[156], size }))
    }

    /// Reads the content. The buffer grows with the received bytes, so a false size costs no
    /// memory.
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

struct Entry {
    name: String,
    kind: u8,
    size: usize,
}

fn until_nul(field: &[u8]) -> &[u8] {
    field.split(|byte| *byte == 0).next().unwrap_or_default()
}

fn text(bytes: &[u8]) -> Result<String, Error> {
    String::from_utf8(bytes.to_vec()).map_err(|_| Error::damaged("a name that is not valid UTF-8"))
}

fn number(field: &[u8]) -> Option<u64> {
    let digits = std::str::from_utf8(until_nul(field)).ok()?.trim_matches(' ');
    u64::from_str_radix(digits, 8).ok()
}
