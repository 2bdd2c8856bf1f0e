//! Errors of a disk without room.

use std::io::{Error, ErrorKind};

/// True if an error says that there is no room: the disk, or a quota, is used up.
pub fn is_full(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}
