//! Checks with a raw image's GPT: sector size, and place of the backup table.

use crate::Error;

/// Sector sizes to search for a GPT, in bytes.
const SECTORS: [usize; 2] = [512, 4096];

/// Returns the sector size of the GPT in the image's first bytes; `None` without a GPT.
pub(super) fn sector(head: &[u8]) -> Option<usize> {
    let is_header = |at: &usize| head.get(*at..).is_some_and(|rest| rest.starts_with(b"EFI PART"));
    SECTORS.into_iter().find(is_header)
}

/// Returns an error if the image is shorter than the disk of its GPT (UEFI specification 5.3.2:
/// AlternateLBA is the disk's last sector). No other check detects such a truncation.
pub(super) fn check_whole(head: &[u8], length: u64, url: &str) -> Result<(), Error> {
    for sector in SECTORS {
        let Some(header) = head.get(sector..sector + 92) else { continue };
        if !header.starts_with(b"EFI PART") {
            continue;
        }
        let last: [u8; 8] = header[32..40].try_into().unwrap_or_default();
        let sector = sector as u64;
        let stated = u64::from_le_bytes(last).saturating_add(1).saturating_mul(sector);
        // A padded image, or one with a few more sectors, is accepted. Half a table is not.
        if stated > length {
            return Err(Error::Short { url: url.to_owned(), stated, length });
        }
    }
    Ok(())
}
