//! Detects long runs of zeros in a downloaded file, which become holes: they take no space on the
//! box's disk, and machines need not fetch them.

use std::fs::File;
use std::ops::Range;

use rustix::fs::{FallocateFlags, fallocate};

/// Minimum bytes of a run that becomes a hole: every hole makes lookups in the file slower.
const RUN_MIN: u64 = 1 << 20;
/// Maximum runs that are remembered, 16 bytes each.
const RUNS_MAX: usize = 1024;
/// Unit of the search for zeros, in bytes.
const GRANULE: usize = 4096;
static ZEROS: [u8; GRANULE] = [0; GRANULE];

/// Runs of zeros found so far.
#[derive(Debug, Default)]
pub(super) struct Zeros {
    /// Range of the last run, which the next bytes may extend.
    last: Range<u64>,
    runs: Vec<Range<u64>>,
}

impl Zeros {
    /// Adds `bytes` at `offset`, which must be the end of the previous bytes. Bytes that are not
    /// all zero end a run.
    pub(super) fn add(&mut self, offset: u64, bytes: &[u8]) {
        let end = offset + bytes.len() as u64;
        if !bytes.chunks(GRANULE).all(|granule| *granule == ZEROS[..granule.len()]) {
            self.end_run();
            self.last = end..end;
            return;
        }
        self.last.end = end;
    }

    fn end_run(&mut self) {
        let run = std::mem::take(&mut self.last);
        if run.end - run.start >= RUN_MIN && self.runs.len() < RUNS_MAX {
            self.runs.push(run);
        }
    }

    /// Turns the runs into holes. Blocks. On a file system without holes the zeros stay.
    pub(super) fn dig(mut self, file: &File) {
        self.end_run();
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        for Range { start, end } in self.runs {
            if let Err(error) = fallocate(file, flags, start, end - start) {
                tracing::debug!(%error, "cannot replace zeros by a hole");
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Seek as _, Write as _};
    use std::os::unix::fs::MetadataExt as _;

    use super::{RUN_MIN, RUNS_MAX, Zeros};

    #[test]
    fn long_runs_become_holes_and_nothing_else_does() {
        let run = usize::try_from(RUN_MIN).unwrap();
        let (long, short) = (run + 30_000, run / 2);
        let parts = [(0, long), (7, 100_000), (0, short), (7, 4096), (0, 2 * run), (7, 1), (0, 9)];
        let bytes: Vec<u8> =
            parts.into_iter().flat_map(|(byte, length)| vec![byte; length]).collect();
        let (mut file, mut zeros) = (tempfile::tempfile().unwrap(), Zeros::default());
        file.write_all(&bytes).unwrap();
        file.sync_all().unwrap();
        let before = file.metadata().unwrap().blocks();
        // In pieces of the size of network reads, not aligned to the runs.
        for (at, piece) in bytes.chunks(10_000).enumerate() {
            zeros.add(at as u64 * 10_000, piece);
        }
        zeros.dig(&file);
        let (mut read, blocks) = (Vec::new(), file.metadata().unwrap().blocks());
        file.rewind().unwrap();
        file.read_to_end(&mut read).unwrap();
        assert!(read == bytes);
        let dug = (before - blocks) * 512;
        assert!(dug > 14 * RUN_MIN / 5 && dug < 16 * RUN_MIN / 5, "{before} blocks, then {blocks}");
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let (zero, data) = (vec![0; usize::try_from(RUN_MIN).unwrap()], [1]);
        let (mut zeros, mut offset) = (Zeros::default(), 0);
        for _ in 0..2 * RUNS_MAX {
            for bytes in [&zero[..], &data] {
                zeros.add(offset, bytes);
                offset += bytes.len() as u64;
            }
        }
        assert_eq!(zeros.runs.len(), RUNS_MAX);
    }
}
