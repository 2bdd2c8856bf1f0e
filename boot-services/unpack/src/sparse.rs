//! Sparse files in archives: GNU's old headers, and its pax formats 0.0, 0.1 and 1.0 (GNU tar
//! manual, "Storing Sparse Files"). bsdtar writes format 1.0 too.
//!
//! ```text
//! 0.0   GNU.sparse.size, then GNU.sparse.offset and GNU.sparse.numbytes for each part
//! 0.1   GNU.sparse.size, GNU.sparse.name, GNU.sparse.map=offset,length,offset,length…
//! 1.0   GNU.sparse.major=1, .minor=0, .name, .realsize; before the parts, in whole blocks:
//!       their number, then offset and length of each, a decimal number a line
//! ```

use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom};

use super::{number, refuse};

const BLOCK: usize = 512;
/// Maximum number of parts of a sparse file. Each takes 16 bytes of memory.
const MAX_EXTENTS: usize = 1 << 20;
/// Digits of the largest valid number (`u64::MAX`).
const DIGITS: usize = 20;

/// Data range of a sparse file, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Extent {
    offset: u64,
    length: u64,
}

/// Data ranges from the archive, not validated yet.
#[derive(Debug, Clone, Default)]
pub(super) struct Extents(Vec<Extent>);

/// Validated data ranges: sorted, without overlap, within the file, and as long in total as the
/// entry's contents.
#[derive(Debug, Clone)]
pub(super) struct Map(Vec<Extent>);

/// Pax records of a sparse file.
#[derive(Debug, Clone, Default)]
pub(super) struct SparseRecords {
    pub(super) name: Option<Vec<u8>>,
    major: Option<u64>,
    minor: Option<u64>,
    size: Option<u64>,
    /// Offset and length of each part, alternating.
    numbers: Vec<u64>,
}

impl SparseRecords {
    /// Stores the record `GNU.sparse.<name>`. Returns `None` for an invalid value.
    pub(super) fn set(&mut self, name: &[u8], value: &[u8]) -> Option<()> {
        match name {
            b"name" => self.name = Some(value.to_vec()).filter(|name| !name.is_empty()),
            b"major" => self.major = Some(number(value)?),
            b"minor" => self.minor = Some(number(value)?),
            b"size" | b"realsize" => self.size = Some(number(value)?),
            b"offset" | b"numbytes" => self.numbers.push(number(value)?),
            b"map" => {
                let numbers = value.split(|byte| *byte == b',').filter(|text| !text.is_empty());
                self.numbers = numbers.map(number).collect::<Option<_>>()?;
            }
            _ => {}
        }
        Some(())
    }

    /// Returns the size of the file in bytes, including holes.
    pub(super) fn size(&self) -> io::Result<u64> {
        self.size.ok_or_else(|| refuse("it is sparse, but no record has its size"))
    }

    /// Returns true for format 1.0, whose map is at the start of the contents; false for 0.0 and
    /// 0.1.
    pub(super) fn is_in_contents(&self) -> io::Result<bool> {
        match (self.major.unwrap_or(0), self.minor.unwrap_or(0)) {
            (0, _) => Ok(false),
            (1, 0) => Ok(true),
            (major, minor) => {
                let known = "known are 0.0, 0.1 and 1.0";
                Err(refuse(&format!("it has the unknown sparse format {major}.{minor}; {known}")))
            }
        }
    }

    /// Returns the data ranges from the records of format 0.0 or 0.1.
    pub(super) fn extents(&self) -> io::Result<Extents> {
        let mut extents = Extents::default();
        for pair in self.numbers.chunks(2) {
            let [offset, length] = *pair else {
                return Err(refuse("its sparse map has an offset without a length"));
            };
            extents.add(offset, length)?;
        }
        Ok(extents)
    }
}

impl Extents {
    pub(super) fn add(&mut self, offset: u64, length: u64) -> io::Result<()> {
        if self.0.len() >= MAX_EXTENTS {
            return Err(refuse(&format!("it is sparse with more than {MAX_EXTENTS} parts")));
        }
        self.0.push(Extent { offset, length });
        Ok(())
    }

    /// Reads the map of format 1.0, whole 512-byte blocks at the start of the contents.
    pub(super) fn read(contents: &mut dyn Read) -> io::Result<Self> {
        let mut lines = Lines { contents, block: [0; BLOCK], used: BLOCK };
        let mut extents = Self::default();
        for _ in 0..lines.number()? {
            let (offset, length) = (lines.number()?, lines.number()?);
            extents.add(offset, length)?;
        }
        Ok(extents)
    }

    /// Validates the ranges for a file of `size` bytes, whose contents in the archive have `packed`
    /// bytes.
    pub(super) fn checked(self, size: u64, packed: u64) -> io::Result<Map> {
        let (mut end, mut sum) = (0_u64, 0_u64);
        for Extent { offset, length } in &self.0 {
            let next = offset.checked_add(*length).filter(|next| *next <= size);
            match next {
                Some(next) if *offset >= end => (end, sum) = (next, sum + length),
                _ => return Err(refuse("the parts of a sparse file overlap or leave it")),
            }
        }
        if sum != packed {
            let text = format!("the parts of a sparse file have {sum} bytes, the archive {packed}");
            return Err(refuse(&text));
        }
        Ok(Map(self.0))
    }
}

impl Map {
    /// Writes the data ranges to the new file, and sets its length to `size` bytes. Gaps stay
    /// holes.
    pub(super) fn write(
        &self,
        contents: &mut dyn Read,
        file: &mut File,
        size: u64,
    ) -> io::Result<()> {
        for Extent { offset, length } in &self.0 {
            file.seek(SeekFrom::Start(*offset))?;
            if io::copy(&mut (&mut *contents).take(*length), file)? != *length {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        file.set_len(size)
    }
}

/// Reader of lines with one decimal number each. Reads the input in whole blocks.
struct Lines<'a> {
    contents: &'a mut dyn Read,
    block: [u8; BLOCK],
    used: usize,
}

impl Lines<'_> {
    fn number(&mut self) -> io::Result<u64> {
        let mut digits = Vec::new();
        while digits.len() <= DIGITS {
            if self.used == BLOCK {
                self.contents.read_exact(&mut self.block)?;
                self.used = 0;
            }
            let byte = self.block[self.used];
            self.used += 1;
            if byte == b'\n' {
                break;
            }
            digits.push(byte);
        }
        let number = number(&digits).filter(|_| !digits.is_empty());
        number.ok_or_else(|| refuse("the map of a sparse file is damaged"))
    }
}
