//! Copies files into a disk image without writing zeros.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use crate::Error;

/// Bytes that are skipped together when all of them are zero.
const PIECE: usize = 64 << 10;

/// Copies the file `from` into `disk` (called `name` in errors) at `offset`, where all bytes must
/// still be zero. Returns the length up to the last piece that is not zero.
pub(crate) fn copy(from: &Path, disk: &mut File, offset: u64, name: &Path) -> Result<u64, Error> {
    let read = |source| Error::Read { path: from.to_owned(), source };
    let mut file = File::open(from).map_err(read)?;
    let mut piece = Vec::with_capacity(PIECE);
    let (mut at, mut end) = (0, 0);
    loop {
        piece.clear();
        file.by_ref().take(PIECE as u64).read_to_end(&mut piece).map_err(read)?;
        if piece.is_empty() {
            return Ok(end);
        }
        if piece.iter().any(|byte| *byte != 0) {
            let write = |source| Error::Write { path: name.to_owned(), source };
            disk.write_all_at(&piece, offset + at).map_err(write)?;
            end = at + piece.len() as u64;
        }
        at += piece.len() as u64;
    }
}
