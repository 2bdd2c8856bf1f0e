//! What a raw image says of itself: the size of its sectors, and where its second partition table
//! is.

use crate::Error;

/// Sector sizes that GPT is met with.
const SECTORS: [usize; 2] = [512, 4096];

/// Size of the sectors that the image's GPT is for; `None` without a GPT.
pub(super) fn sector(head: &[u8]) -> Option<usize> {
    let is_header = |at: &usize| head.get(*at..).is_some_and(|rest| rest.starts_with(b"EFI PART"));
    SECTORS.into_iter().find(is_header)
}

/// Refuse an image that ends before its GPT does (UEFI specification 5.3.2: AlternateLBA, the last
/// sector of the disk): it was cut where it is served from, and nothing else would show it.
pub(super) fn check_whole(head: &[u8], length: u64, url: &str) -> Result<(), Error> {
    for sector in SECTORS {
        let Some(header) = head.get(sector..sector + 92) else { continue };
        if !header.starts_with(b"EFI PART") {
            continue;
        }
        let last: [u8; 8] = header[32..40].try_into().unwrap_or_default();
        let sector = sector as u64;
        let stated = u64::from_le_bytes(last).saturating_add(1).saturating_mul(sector);
        // A tool may have padded an image, or left a few sectors; half a table is not that.
        if stated > length {
            return Err(Error::Short { url: url.to_owned(), stated, length });
        }
    }
    Ok(())
}
