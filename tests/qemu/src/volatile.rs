//! What a disk holds after its power went: all that was flushed, and of the rest whatever reached
//! it. QEMU logs a board's writes and flushes (`block/blklogwrites.c`, in the format of the
//! kernel's dm-log-writes); they are written again here as a disk with a cache would have written
//! them.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use crate::Error;

/// First number of the log.
const MAGIC: u64 = 0x006a_7366_7773_6872;
/// Bytes of the log's sectors, and of its units.
const SECTOR: u64 = 512;
const FLUSH: u64 = 1;
/// It is on the disk when it is acknowledged.
const FUA: u64 = 2;
const DISCARD: u64 = 4;
/// Bytes copied at once.
const PIECE: u64 = 1 << 20;

/// One line of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    /// Where it begins on the disk, and how many, in sectors.
    sector: u64,
    count: u64,
    flags: u64,
    /// Where its data are in the log.
    data: u64,
}

/// What became of the writes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lost {
    /// On the disk, because it was told to.
    pub safe: usize,
    /// On the disk all the same.
    pub kept: usize,
    /// Never there.
    pub lost: usize,
}

/// Writes to `disk`, which is as it was before the board began, what `log` holds in its first
/// `until` bytes: everything up to the last flush, and then what `reaches_it` says.
///
/// # Errors
/// A file, or `log` is none.
pub fn write_again(
    log: &Path,
    until: u64,
    disk: &Path,
    mut reaches_it: impl FnMut() -> bool,
) -> Result<Lost, Error> {
    let from = File::open(log).map_err(Error::path("open", log))?;
    let to = File::options().write(true).open(disk).map_err(Error::path("open", disk))?;
    let entries = entries(&from, until).map_err(Error::path("read", log))?;
    let flushed = entries.iter().rposition(|entry| entry.flags & FLUSH != 0);
    let mut lost = Lost::default();
    for (number, entry) in entries.iter().enumerate() {
        // What was discarded may still be there.
        if entry.count == 0 || entry.flags & DISCARD != 0 {
            continue;
        }
        let is_safe = flushed.is_some_and(|last| number < last) || entry.flags & FUA != 0;
        if !is_safe {
            if !reaches_it() {
                lost.lost += 1;
                continue;
            }
            lost.kept += 1;
        } else {
            lost.safe += 1;
        }
        copy(&from, &to, *entry).map_err(Error::path("write", disk))?;
    }
    Ok(lost)
}

fn entries(log: &File, until: u64) -> io::Result<Vec<Entry>> {
    let number = |bytes: &[u8], at: usize| {
        let mut value = [0; 8];
        value.copy_from_slice(&bytes[at * 8..][..8]);
        u64::from_le_bytes(value)
    };
    let mut head = [0; 32];
    log.read_exact_at(&mut head, 0)?;
    if number(&head, 0) != MAGIC {
        return Err(io::Error::other("no log of writes"));
    }
    let (mut entries, mut at) = (Vec::new(), SECTOR);
    while at + SECTOR <= until {
        log.read_exact_at(&mut head, at)?;
        let [sector, count, flags] = [0, 1, 2].map(|place| number(&head, place));
        let data = at + SECTOR;
        at = if flags & DISCARD == 0 { data + count * SECTOR } else { data };
        if (count, flags) == (0, 0) || at > until {
            break;
        }
        entries.push(Entry { sector, count, flags, data });
    }
    Ok(entries)
}

fn copy(from: &File, to: &File, entry: Entry) -> io::Result<()> {
    let (mut done, whole) = (0, entry.count * SECTOR);
    let mut buffer = vec![0; usize::try_from(PIECE.min(whole)).unwrap_or_default()];
    while done < whole {
        let piece = usize::try_from(PIECE.min(whole - done)).unwrap_or_default();
        from.read_exact_at(&mut buffer[..piece], entry.data + done)?;
        to.write_all_at(&buffer[..piece], entry.sector * SECTOR + done)?;
        done += PIECE;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{DISCARD, FLUSH, FUA, Lost, MAGIC, SECTOR, write_again};

    /// A log of entries: where, what its one sector is full of, flags.
    fn log(entries: &[(u64, Option<u8>, u64)]) -> Vec<u8> {
        let sector = |numbers: &[u64]| {
            let mut bytes: Vec<u8> = numbers.iter().flat_map(|it| it.to_le_bytes()).collect();
            bytes.resize(512, 0);
            bytes
        };
        let mut bytes = sector(&[MAGIC, 1, 0, SECTOR]);
        for (at, data, flags) in entries {
            let count = u64::from(data.is_some() || flags & DISCARD != 0);
            bytes.extend(sector(&[*at, count, *flags, 0]));
            bytes.extend(data.iter().flat_map(|byte| [*byte; 512]));
        }
        bytes
    }

    #[test]
    fn what_was_flushed_is_there_and_the_rest_may_be() {
        let folder = tempfile::tempdir().unwrap();
        let (file, disk) = (folder.path().join("log"), folder.path().join("disk"));
        let bytes = log(&[
            (0, Some(1), 0),
            (1, Some(1), 0),
            (2, None, DISCARD),
            (0, None, FLUSH),
            (1, Some(2), 0),
            (2, Some(2), FUA),
            (3, Some(2), 0),
            (4, Some(2), 0),
        ]);
        fs::write(&file, &bytes).unwrap();
        let whole = bytes.len() as u64;
        let lost = |safe, kept, lost| Lost { safe, kept, lost };
        // Up to where, what reaches the disk, what it holds then, what was lost of it.
        let table: [(u64, &[bool], [u8; 5], Lost); 5] = [
            (whole, &[true, true, true], [1, 2, 2, 2, 2], lost(3, 3, 0)),
            (whole, &[false, false, false], [1, 1, 2, 9, 9], lost(3, 0, 3)),
            (whole, &[false, true, false], [1, 1, 2, 2, 9], lost(3, 1, 2)),
            // The last one was not logged whole.
            (whole - 1, &[true, true], [1, 2, 2, 2, 9], lost(3, 2, 0)),
            // Nothing was flushed yet.
            (SECTOR * 5, &[false, true], [9, 1, 9, 9, 9], lost(0, 1, 1)),
        ];
        for (until, reaches, holds, lost) in table {
            fs::write(&disk, [9; 5 * 512]).unwrap();
            let mut answers = reaches.iter();
            let told = write_again(&file, until, &disk, || *answers.next().unwrap()).unwrap();
            let found = fs::read(&disk).unwrap();
            let first: Vec<u8> = found.chunks(512).map(|sector| sector[0]).collect();
            assert_eq!((&first[..], told), (&holds[..], lost), "{until} {reaches:?}");
        }
        fs::write(&file, [0; 512]).unwrap();
        write_again(&file, 512, &disk, || true).unwrap_err();
    }
}
