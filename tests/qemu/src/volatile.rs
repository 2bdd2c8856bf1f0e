//! Contents of a disk after a power cut: every flushed write, and a selection of the others. QEMU
//! logs a board's writes and flushes (`block/blklogwrites.c`, in the format of the kernel's
//! dm-log-writes). They are replayed here as a disk with a write cache would have stored them.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use crate::Error;

/// Magic number at the start of the log.
const MAGIC: u64 = 0x006a_7366_7773_6872;
/// Sector size of the log in bytes; the log counts positions and lengths in sectors. The constants
/// below are the flags of a log entry.
const SECTOR: u64 = 512;
const FLUSH: u64 = 1;
/// Force unit access: the data is on the disk when the write is acknowledged.
const FUA: u64 = 2;
const DISCARD: u64 = 4;
/// Bytes copied at once, 1 MiB.
const PIECE: u64 = 1 << 20;

/// One entry of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    /// First sector on the disk, and number of sectors.
    sector: u64,
    count: u64,
    flags: u64,
    /// Offset of the entry's data in the log, in bytes.
    data: u64,
}

/// Counts of the writes after a power cut.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lost {
    /// Writes that are on the disk for certain: followed by a flush, or with forced unit access.
    pub safe: usize,
    /// Writes that reached the disk without a flush.
    pub kept: usize,
    /// Writes that are lost.
    pub lost: usize,
}

/// Replays the first `until` bytes of `log` onto `disk`, whose contents are from before the start
/// of the board. All writes before the last flush, and all writes with forced unit access, are
/// replayed. For each other write, `reaches_it` returns true if the write is replayed.
///
/// # Errors
/// A file cannot be read or written, or `log` is not a valid log.
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
        // Discarded data may still be on the disk.
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

    /// Builds a log of entries: sector, the byte that fills its one sector, flags.
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
        // Columns: length of the log, writes that reach the disk, disk contents after it, counts.
        let table: [(u64, &[bool], [u8; 5], Lost); 5] = [
            (whole, &[true, true, true], [1, 2, 2, 2, 2], lost(3, 3, 0)),
            (whole, &[false, false, false], [1, 1, 2, 9, 9], lost(3, 0, 3)),
            (whole, &[false, true, false], [1, 1, 2, 2, 9], lost(3, 1, 2)),
            // The last entry is incomplete.
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
