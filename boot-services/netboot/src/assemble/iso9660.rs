//! Builds a CD image that UEFI firmware boots: ISO 9660 (ECMA-119) with an El Torito catalog (the
//! "El Torito" specification, version 1.0; UEFI specification, section 13.3.2.1). A partition table
//! in the first sector makes the image bootable from a USB stick as well.
//!
//! ```text
//! sector  0   partition table (MBR), one partition of type 0xEF: the system partition
//!        16   primary volume descriptor · 17 boot record · 18 terminator
//!        19   path table, little-endian · 20 big-endian
//!        21   root folder: BOOT.CAT, EFI.IMG · 22 boot catalogue
//!        23   the system partition
//! ```

use super::pieces::{Fields as _, Pieces};
use crate::Error;

const SECTOR: u64 = 2048;
const PATHS: u32 = 19;
const ROOT: u32 = 21;
const CATALOGUE: u32 = 22;
const PARTITION: u32 = 23;
/// Platform ID of the catalog: EFI.
const EFI: u8 = 0xef;
/// Unit of partition tables and of the catalog, in bytes.
const BLOCK: u64 = 512;

/// Returns the image around a system partition.
pub(super) fn bootable(partition: Pieces<'_>) -> Result<Pieces<'_>, Error> {
    let too_large = |length| Error::MediumTooLarge { length };
    let size = u32::try_from(partition.len()).map_err(|_| too_large(partition.len()))?;
    let sectors = partition.len().div_ceil(SECTOR) + u64::from(PARTITION);
    // Fewer than 2³² bytes have fewer than 2³² sectors.
    let sectors = sectors as u32;
    let mut out = Pieces::default();
    out.push(partition_table(size));
    let mut put = |sector: u32, bytes: Vec<u8>| {
        out.fill(u64::from(sector) * SECTOR);
        out.push(bytes);
    };
    put(16, volume(sectors));
    put(17, boot_record());
    put(18, descriptor(255));
    put(PATHS, path_table(u32::to_le_bytes(ROOT), u16::to_le_bytes(1)));
    put(PATHS + 1, path_table(u32::to_be_bytes(ROOT), u16::to_be_bytes(1)));
    put(ROOT, root(size));
    put(CATALOGUE, catalogue(size));
    out.fill(u64::from(PARTITION) * SECTOR);
    out.append(partition);
    out.fill(u64::from(sectors) * SECTOR);
    Ok(out)
}

/// Returns a partition table with one partition, the system partition.
fn partition_table(size: u32) -> Vec<u8> {
    let mut table = vec![0; BLOCK as usize];
    table[440..444].copy_from_slice(b"TBOX");
    let entry = &mut table[446..462];
    // The partition has no cylinder addresses; the largest values mean that.
    entry[1..4].copy_from_slice(&[0xfe, 0xff, 0xff]);
    entry[4] = EFI;
    entry[5..8].copy_from_slice(&[0xfe, 0xff, 0xff]);
    entry.u32_at(8, PARTITION * (SECTOR / BLOCK) as u32);
    entry.u32_at(12, size.div_ceil(BLOCK as u32));
    table[510..].copy_from_slice(&[0x55, 0xaa]);
    table
}

fn descriptor(kind: u8) -> Vec<u8> {
    let mut bytes = vec![0; SECTOR as usize];
    bytes[0] = kind;
    bytes[1..6].copy_from_slice(b"CD001");
    bytes[6] = 1;
    bytes
}

/// Primary volume descriptor (ECMA-119, section 8.4).
fn volume(sectors: u32) -> Vec<u8> {
    let mut bytes = descriptor(1);
    let mut text = |at: usize, length: usize, text: &str| {
        bytes[at..at + length].fill(b' ');
        bytes[at..at + text.len()].copy_from_slice(text.as_bytes());
    };
    text(8, 32, "");
    text(40, 32, "TINBOX");
    text(190, 128, "");
    text(318, 128, "");
    text(446, 128, "");
    text(574, 128, "TINBOX");
    text(702, 111, "");
    both32(&mut bytes, 80, sectors);
    both16(&mut bytes, 120, 1);
    both16(&mut bytes, 124, 1);
    both16(&mut bytes, 128, SECTOR as u16);
    both32(&mut bytes, 132, PATH_TABLE as u32);
    bytes.u32_at(140, PATHS);
    bytes[148..152].copy_from_slice(&(PATHS + 1).to_be_bytes());
    bytes[156..190].copy_from_slice(&record(&[0], FOLDER, ROOT, SECTOR as u32));
    // Created and modified at the epoch; expiration and effective dates are not set.
    for at in [813, 830] {
        bytes[at..at + 16].copy_from_slice(b"1970010100000000");
    }
    for at in [847, 864] {
        bytes[at..at + 16].fill(b'0');
    }
    bytes[881] = 1;
    bytes
}

/// Boot record, which has the sector of the catalog.
fn boot_record() -> Vec<u8> {
    let mut bytes = descriptor(0);
    bytes[7..30].copy_from_slice(b"EL TORITO SPECIFICATION");
    bytes.u32_at(0x47, CATALOGUE);
    bytes
}

/// Bytes of a path table that has only the root folder.
const PATH_TABLE: usize = 10;

fn path_table(root: [u8; 4], parent: [u8; 2]) -> Vec<u8> {
    let mut bytes = vec![1, 0];
    bytes.extend(root);
    bytes.extend(parent);
    // The name of the root is one zero byte; another one makes the length even.
    bytes.extend([0, 0]);
    debug_assert_eq!(bytes.len(), PATH_TABLE);
    bytes
}

fn root(partition: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, flags, at, size) in [
        (&[0][..], FOLDER, ROOT, SECTOR as u32),
        (&[1], FOLDER, ROOT, SECTOR as u32),
        (b"BOOT.CAT;1", 0, CATALOGUE, SECTOR as u32),
        (b"EFI.IMG;1", 0, PARTITION, partition),
    ] {
        bytes.extend(record(name, flags, at, size));
    }
    bytes
}

/// Flag of a folder in its directory record.
const FOLDER: u8 = 2;

/// Directory record of a file or folder (ECMA-119, section 9.1).
fn record(name: &[u8], flags: u8, at: u32, size: u32) -> Vec<u8> {
    let length = (33 + name.len()).next_multiple_of(2);
    let mut bytes = vec![0; length];
    // Names in this image have at most ten characters.
    bytes[0] = length as u8;
    both32(&mut bytes, 2, at);
    both32(&mut bytes, 10, size);
    // 1 January 1970: years since 1900, month, day.
    bytes[18..21].copy_from_slice(&[70, 1, 1]);
    bytes[25] = flags;
    both16(&mut bytes, 28, 1);
    bytes[32] = name.len() as u8;
    bytes[33..33 + name.len()].copy_from_slice(name);
    bytes
}

/// Boot catalog: the validation entry, and one entry that boots without floppy emulation.
fn catalogue(size: u32) -> Vec<u8> {
    let mut bytes = vec![0; 64];
    bytes[..2].copy_from_slice(&[1, EFI]);
    bytes[4..10].copy_from_slice(b"TINBOX");
    bytes[30..32].copy_from_slice(&[0x55, 0xaa]);
    // The 16-bit words of the first entry must add up to zero.
    let words = bytes[..32].chunks(2).map(|word| u16::from_le_bytes([word[0], word[1]]));
    let sum = words.fold(0_u16, u16::wrapping_add);
    bytes.u16_at(28, sum.wrapping_neg());
    bytes[32] = 0x88;
    // A size beyond the field's range is written as zero; firmware then reads to the end of the
    // image.
    bytes.u16_at(38, u16::try_from(size.div_ceil(BLOCK as u32)).unwrap_or(0));
    bytes.u32_at(40, PARTITION);
    bytes.resize(SECTOR as usize, 0);
    bytes
}

/// Writes a number in little-endian and then in big-endian order (ECMA-119, section 7.3.3).
fn both32(bytes: &mut [u8], at: usize, value: u32) {
    bytes.u32_at(at, value);
    bytes[at + 4..at + 8].copy_from_slice(&value.to_be_bytes());
}

fn both16(bytes: &mut [u8], at: usize, value: u16) {
    bytes.u16_at(at, value);
    bytes[at + 2..at + 4].copy_from_slice(&value.to_be_bytes());
}
