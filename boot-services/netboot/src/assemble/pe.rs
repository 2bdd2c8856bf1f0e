//! Adds sections to a PE32+ image: systemd's EFI stub reads the kernel from such a section.
//!
//! Offsets are from Microsoft's "PE Format". The stub finds its sections by name in memory, where
//! the firmware loaded them. So each new section needs an address above the existing sections.

use super::pieces::{Fields as _, Pieces};
use crate::Error;

/// Bytes of a section's header.
const SECTION: usize = 40;
/// Maximum sections of an image; the stub has about ten.
const MAX_SECTIONS: usize = 64;
/// Offset of the certificate table in the optional header. A changed image invalidates its
/// certificates.
const CERTIFICATES: usize = 112 + 4 * 8;
/// Section flags: initialized data, readable (IMAGE_SCN_CNT_INITIALIZED_DATA, IMAGE_SCN_MEM_READ).
const CHARACTERISTICS: u32 = 0x4000_0040;

struct Image<'a> {
    bytes: &'a [u8],
    coff: usize,
    optional: usize,
    table: usize,
    sections: usize,
    section_alignment: u64,
    file_alignment: u64,
}

/// Returns `stub` with `sections` added after its existing sections.
pub(super) fn with_sections<'a>(
    stub: &'a [u8],
    sections: &[(&str, &'a [u8])],
) -> Result<Pieces<'a>, Error> {
    let image = Image::read(stub)?;
    let (address, first_data) = image.extent()?;
    let table_end = image.table + (image.sections + sections.len()) * SECTION;
    if table_end as u64 > first_data {
        return Err(refused("its header has no space for more sections"));
    }
    // The header lies before the first section's data.
    let mut header = stub[..first_data as usize].to_vec();
    let mut address = address.next_multiple_of(image.section_alignment);
    let mut at = image.end_of_data()?;
    let mut data = Pieces::default();
    data.push(&stub[first_data as usize..at as usize]);
    let offset_of = |data: &Pieces<'_>| first_data + data.len();
    for (index, (name, bytes)) in sections.iter().enumerate() {
        at = at.next_multiple_of(image.file_alignment);
        data.fill(at - first_data);
        data.push(*bytes);
        let raw = (bytes.len() as u64).next_multiple_of(image.file_alignment);
        let entry = image.table + (image.sections + index) * SECTION;
        let entry = &mut header[entry..entry + SECTION];
        entry.fill(0);
        entry[..name.len()].copy_from_slice(name.as_bytes());
        entry.u32_at(8, small(bytes.len() as u64)?);
        entry.u32_at(12, small(address)?);
        entry.u32_at(16, small(raw)?);
        entry.u32_at(20, small(at)?);
        entry.u32_at(36, CHARACTERISTICS);
        address = (address + bytes.len() as u64).next_multiple_of(image.section_alignment);
        at += raw;
    }
    data.fill(at - first_data);
    debug_assert_eq!(offset_of(&data), at);
    // The count from the header has 16 bits, and few sections are added.
    header.u16_at(image.coff + 2, (image.sections + sections.len()) as u16);
    // No symbols: they would lie between the sections.
    header.u32_at(image.coff + 8, 0);
    header.u32_at(image.coff + 12, 0);
    header.u32_at(image.optional + 56, small(address)?);
    header.u32_at(image.optional + 64, 0);
    header[image.optional + CERTIFICATES..][..8].fill(0);
    let mut whole = Pieces::default();
    whole.push(header);
    whole.append(data);
    Ok(whole)
}

impl<'a> Image<'a> {
    fn read(bytes: &'a [u8]) -> Result<Self, Error> {
        let short = || refused("it is truncated");
        if !bytes.starts_with(b"MZ") {
            return Err(refused("it is not a PE image"));
        }
        let signature = number(bytes, 0x3c, 4).ok_or_else(short)? as usize;
        let coff = signature.saturating_add(4);
        if bytes.get(signature..coff) != Some(b"PE\0\0") {
            return Err(refused("it is not a PE image"));
        }
        let optional = coff + 20;
        let sections = number(bytes, coff + 2, 2).ok_or_else(short)? as usize;
        let length = number(bytes, coff + 16, 2).ok_or_else(short)? as usize;
        if number(bytes, optional, 2) != Some(0x20b) || length < CERTIFICATES + 8 {
            return Err(refused("it is not a 64-bit PE image"));
        }
        let alignment = |at: usize| {
            let value = number(bytes, optional + at, 4).ok_or_else(short)?;
            let usual = value.is_power_of_two() && value <= 1 << 16;
            if usual { Ok(value) } else { Err(refused("its alignments are not supported")) }
        };
        // At least a page: kernels must begin at a page, and firmware protects memory by pages.
        let section_alignment = alignment(32)?.max(4096);
        let file_alignment = alignment(36)?;
        if sections == 0 || sections > MAX_SECTIONS {
            return Err(refused("it has no sections, or too many"));
        }
        let table = optional + length;
        bytes.get(table..table + sections * SECTION).ok_or_else(short)?;
        Ok(Self { bytes, coff, optional, table, sections, section_alignment, file_alignment })
    }

    /// Returns the number at offset `at` of each section's header.
    fn each(&self, at: usize) -> impl Iterator<Item = u64> {
        (0..self.sections).map(move |index| {
            number(self.bytes, self.table + index * SECTION + at, 4).unwrap_or_default()
        })
    }

    /// Returns the first free address in memory, and the file offset of the first section's data.
    fn extent(&self) -> Result<(u64, u64), Error> {
        let ends = self.each(12).zip(self.each(8)).map(|(address, size)| address + size);
        let data = self.each(20).zip(self.each(16)).filter(|(_, size)| *size > 0);
        let first = data.map(|(at, _)| at).min();
        match (ends.max(), first) {
            (Some(end), Some(first)) if first <= self.bytes.len() as u64 => Ok((end, first)),
            _ => Err(refused("its sections are outside of the file")),
        }
    }

    /// Returns the end of the last section's data in the file. Bytes after this end do not belong
    /// to the image.
    fn end_of_data(&self) -> Result<u64, Error> {
        let end = self.each(20).zip(self.each(16)).map(|(at, size)| at + size).max();
        let end = end.filter(|end| *end <= self.bytes.len() as u64);
        end.ok_or_else(|| refused("its sections are outside of the file"))
    }
}

fn number(bytes: &[u8], at: usize, width: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(width)?)?;
    Some(bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
}

fn small(value: u64) -> Result<u32, Error> {
    u32::try_from(value).map_err(|_| Error::MediumTooLarge { length: value })
}

fn refused(reason: &'static str) -> Error {
    Error::Stub { reason }
}
