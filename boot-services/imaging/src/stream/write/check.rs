//! Checks an image's first bytes and length against the disk.

use super::gpt;
use crate::Error;
use crate::disks::disk::Disk;

/// Offset and text of a tar archive's magic (POSIX.1-2017, ustar; same in GNU tar).
const TAR: (usize, &[u8]) = (257, b"ustar");

/// Returns an error for a tar archive, and for an image whose GPT has another sector size.
pub(super) fn check(head: &[u8], disk: &Disk, url: &str) -> Result<(), Error> {
    if is_tar(head) {
        return Err(Error::Tar { url: url.to_owned() });
    }
    match disk.size() {
        Some(_) => check_sectors(gpt::sector(head), disk.sector(), disk, url),
        None => Ok(()),
    }
}

/// Returns true for a tar archive. The oldest archives have no magic; their header checksum is
/// verified, which no boot sector satisfies.
fn is_tar(head: &[u8]) -> bool {
    let (at, mark) = TAR;
    let Some(header) = head.get(..512) else { return false };
    if header[at..].starts_with(mark) {
        return true;
    }
    let sum = |bytes: &[u8]| bytes.iter().map(|byte| u32::from(*byte)).sum::<u32>();
    // The field of the checksum counts as spaces.
    let sum = sum(&header[..148]) + 8 * u32::from(b' ') + sum(&header[156..]);
    header[0] != 0 && tar::Header::from_byte_slice(header).cksum().is_ok_and(|own| own == sum)
}

/// Returns an error if the image's MBR is for another sector size, known from the image's length.
pub(super) fn check_whole(head: &[u8], length: u64, disk: &Disk, url: &str) -> Result<(), Error> {
    match disk.size() {
        Some(_) => check_sectors(mbr_sector(head, length), disk.sector(), disk, url),
        None => Ok(()),
    }
}

fn check_sectors(image: Option<usize>, sector: usize, disk: &Disk, url: &str) -> Result<(), Error> {
    match image {
        Some(image) if image != sector => {
            Err(Error::Sectors { url: url.to_owned(), image, disk: disk.path().to_owned(), sector })
        }
        _ => Ok(()),
    }
}

/// Returns the sector size of an image with an MBR: 512 if the length excludes 4096, else `None`.
fn mbr_sector(head: &[u8], length: u64) -> Option<usize> {
    /// Partition type of the protective MBR of a GPT.
    const PROTECTIVE: u8 = 0xee;
    let table = head.get(446..510)?;
    let has_mark = head.get(510..512)? == b"\x55\xaa";
    if !has_mark || gpt::sector(head).is_some() {
        return None;
    }
    let number = |entry: &[u8], at: usize| {
        let bytes: [u8; 4] = entry[at..at + 4].try_into().unwrap_or_default();
        u64::from(u32::from_le_bytes(bytes))
    };
    let mut end = 0;
    for entry in table.chunks(16).filter(|entry| entry[4] != 0) {
        // Boot sectors of filesystems have code at this place.
        if !matches!(entry[0], 0 | 0x80) || entry[4] == PROTECTIVE {
            return None;
        }
        end = end.max(number(entry, 8) + number(entry, 12));
    }
    let fits = |sector: u64| end * sector <= length;
    match (end, fits(512), fits(4096)) {
        (0, ..) | (_, _, true) | (_, false, _) => None,
        (_, true, false) => Some(512),
    }
}

#[cfg(test)]
mod tests {
    use super::{is_tar, mbr_sector};

    fn mbr(entries: &[(u8, u8, u32, u32)]) -> Vec<u8> {
        let mut head = vec![0; 8192];
        for (at, (flag, kind, start, size)) in entries.iter().enumerate() {
            let entry = &mut head[446 + 16 * at..];
            (entry[0], entry[4]) = (*flag, *kind);
            entry[8..12].copy_from_slice(&start.to_le_bytes());
            entry[12..16].copy_from_slice(&size.to_le_bytes());
        }
        head[510..512].copy_from_slice(b"\x55\xaa");
        head
    }

    #[test]
    fn a_tar_archive_is_known_without_its_mark() {
        let mut header = tar::Header::new_old();
        header.set_path("disk.img").unwrap();
        header.set_mode(0o644);
        header.set_size(8 << 20);
        header.set_cksum();
        assert!(is_tar(header.as_bytes()));
        assert!(!is_tar(&[header.as_bytes()[..511].to_vec(), vec![1]].concat()), "another sum");
        assert!(!is_tar(&mbr(&[(0x80, 0x83, 2048, 2048)])) && !is_tar(&[0; 512]) && !is_tar(b""));
    }

    #[test]
    fn a_table_tells_its_sectors_by_the_length_of_the_image() {
        let mib = 1 << 20;
        let linux = mbr(&[(0x80, 0x83, 2048, 8 * 2048)]);
        assert_eq!(mbr_sector(&linux, 9 * mib), Some(512));
        assert_eq!(mbr_sector(&linux, 100 * mib), None, "either is possible");
        assert_eq!(mbr_sector(&linux, mib), None, "a part of an image");
        assert_eq!(mbr_sector(&mbr(&[]), 9 * mib), None);
        assert_eq!(mbr_sector(&mbr(&[(0, 0xee, 1, 8 * 2048)]), 9 * mib), None);
        assert_eq!(mbr_sector(&mbr(&[(0x33, 0x83, 2048, 2048)]), 9 * mib), None, "a boot sector");
        let mut gpt = mbr(&[(0, 0x83, 2048, 8 * 2048)]);
        gpt[512..520].copy_from_slice(b"EFI PART");
        assert_eq!(mbr_sector(&gpt, 9 * mib), None, "its GPT says it");
        assert_eq!(mbr_sector(&[], 0), None);
    }
}
