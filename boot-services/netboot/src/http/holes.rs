//! Reports the holes of a sparse file, so that a client need not fetch zeros.
//!
//! A client requests the holes with the field `tinbox-holes: ?1`. The response has `tinbox-holes:
//! FIRST-LAST, …`, ascending, with bytes counted as in `Range`. The field is Tinbox's own, because
//! HTTP has none for holes. The response's body is unchanged. A client may skip any of the holes,
//! by requesting ranges of the version that the response's entity tag names.

use std::fs::File;
use std::io;

use axum::http::HeaderName;
use rustix::fs::{SeekFrom, seek};

/// Name of the field, in a request and in a response.
pub(super) const FIELD: HeaderName = HeaderName::from_static("tinbox-holes");
/// Value of the field in a request.
pub(super) const ASK: &[u8] = b"?1";
/// Minimum bytes of a hole that is reported: skipping a shorter one takes longer than fetching it.
const HOLE_MIN: u64 = 4 << 20;
/// Maximum holes that are reported.
const HOLES_MAX: usize = 64;
/// Maximum holes that are examined in a file; more are ignored.
const LOOKS_MAX: usize = 4096;

/// Returns the field's value for a file of `size` bytes; `None` if the file has no hole to report.
pub(super) fn of(file: &File, size: u64) -> Option<String> {
    // ENXIO: no data follows this offset.
    let data = |from| match seek(file, SeekFrom::Data(from)) {
        Err(error) if error == rustix::io::Errno::NXIO => Ok(size),
        found => found.map_err(io::Error::from),
    };
    let hole = |from| seek(file, SeekFrom::Hole(from)).map_err(io::Error::from);
    let ranges = find(size, data, hole).unwrap_or_default();
    (!ranges.is_empty()).then(|| ranges.join(", "))
}

/// Finds the holes. `data` and `hole` return the next data and the next hole at or after an offset.
fn find(
    size: u64,
    data: impl Fn(u64) -> io::Result<u64>,
    hole: impl Fn(u64) -> io::Result<u64>,
) -> io::Result<Vec<String>> {
    let (mut ranges, mut at) = (Vec::new(), 0);
    for _ in 0..LOOKS_MAX {
        if at >= size || ranges.len() == HOLES_MAX {
            break;
        }
        // Every file ends with a virtual hole (lseek(2)).
        let start = hole(at)?.min(size);
        at = if start < size { data(start)?.min(size) } else { size };
        if at - start >= HOLE_MIN {
            ranges.push(format!("{start}-{}", at - 1));
        }
    }
    Ok(ranges)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt as _;

    use super::{HOLE_MIN, HOLES_MAX, LOOKS_MAX, find, of};

    #[test]
    fn long_holes_are_told() {
        let file = tempfile::tempfile().unwrap();
        let size = 5 * HOLE_MIN;
        file.set_len(size).unwrap();
        assert_eq!(of(&file, size).unwrap(), format!("0-{}", size - 1));
        // The file has data, a hole that is too short, data, and a hole.
        file.write_all_at(&[1; 4096], 0).unwrap();
        file.write_all_at(&[1; 4096], HOLE_MIN).unwrap();
        let last = format!("{}-{}", HOLE_MIN + 4096, size - 1);
        assert_eq!(of(&file, size).unwrap(), last);
        file.write_all_at(&[1], size - 1).unwrap();
        assert_eq!(of(&file, size).unwrap(), format!("{}-{}", HOLE_MIN + 4096, size - 4097));
        file.set_len(HOLE_MIN).unwrap();
        assert_eq!(of(&file, HOLE_MIN), None);
        assert_eq!(of(&tempfile::tempfile().unwrap(), 0), None);
    }

    #[test]
    fn a_file_in_pieces_costs_little() {
        let looks = std::cell::Cell::new(0);
        let pieces = |length: u64| {
            looks.set(0);
            let next = |from: u64| {
                looks.set(looks.get() + 1);
                Ok(from + length)
            };
            find(u64::MAX >> 8, next, next).unwrap()
        };
        assert_eq!(pieces(HOLE_MIN).len(), HOLES_MAX);
        assert!(looks.get() <= 2 * HOLES_MAX + 1);
        assert!(pieces(4096).is_empty());
        assert_eq!(looks.get(), 2 * LOOKS_MAX);
    }
}
