//! Errors of a full disk.

use std::io::{Error, ErrorKind};

/// Returns true if an error means that the disk or a quota is full.
pub fn is_full(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}
