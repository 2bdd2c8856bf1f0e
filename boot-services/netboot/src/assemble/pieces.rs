//! File under construction; its large parts are not copied.

use std::borrow::Cow;
use std::io::{self, Write};

/// Concatenated byte slices; borrowed slices are not copied.
#[derive(Debug, Clone, Default)]
pub struct Pieces<'a> {
    parts: Vec<Cow<'a, [u8]>>,
    length: u64,
}

impl<'a> Pieces<'a> {
    /// Returns the total length in bytes.
    pub fn len(&self) -> u64 {
        self.length
    }

    /// Returns true if the total length is zero.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Writes all bytes in order.
    ///
    /// # Errors
    /// The writer fails.
    pub fn write_to(&self, out: &mut impl Write) -> io::Result<()> {
        self.parts.iter().try_for_each(|part| out.write_all(part))
    }

    pub(super) fn push(&mut self, part: impl Into<Cow<'a, [u8]>>) {
        let part = part.into();
        self.length += part.len() as u64;
        self.parts.push(part);
    }

    pub(super) fn append(&mut self, other: Self) {
        self.length += other.length;
        self.parts.extend(other.parts);
    }

    /// Appends zeros up to the offset `end`; does nothing if the length is already larger.
    pub(super) fn fill(&mut self, end: u64) {
        let missing = end.saturating_sub(self.length);
        // The length fits into memory: every caller fills up to the next sector or table.
        self.push(vec![0; usize::try_from(missing).unwrap_or(0)]);
    }
}

/// Writes numbers in little-endian order at given offsets.
pub(super) trait Fields {
    fn u16_at(&mut self, at: usize, value: u16);
    fn u32_at(&mut self, at: usize, value: u32);
}

impl Fields for [u8] {
    fn u16_at(&mut self, at: usize, value: u16) {
        self[at..at + 2].copy_from_slice(&value.to_le_bytes());
    }

    fn u32_at(&mut self, at: usize, value: u32) {
        self[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }
}
