//! Text files beside the image.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use crate::error::FlashError;

/// Reads at most `limit` bytes of a text file; `None` if it does not exist.
pub fn text(path: &Path, limit: u64) -> Result<Option<String>, FlashError> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(|source| unread(path, source))?,
    };
    let mut text = String::new();
    let read = file.take(limit).read_to_string(&mut text);
    read.map_err(|source| unread(path, source))?;
    Ok(Some(text))
}

/// Returns the error of a file that cannot be read.
pub fn unread(path: &Path, source: io::Error) -> FlashError {
    FlashError::Read { file: path.display().to_string(), source }
}
