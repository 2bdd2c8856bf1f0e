//! Downloads a small file into memory, or any file into a file of the agent's OS.

use std::fs::File;
use std::io::Read as _;
use std::sync::Arc;

use super::fetch::FetchRequest;
use super::timeouts::Timeouts;
use super::{Checksum, Url, receive};
use crate::Error;

/// Downloads `url` into memory. Returns at most `most` bytes; the rest is dropped.
///
/// # Errors
/// The download fails.
pub async fn read_bytes(url: &Url, most: u64, timeouts: Timeouts) -> Result<Vec<u8>, Error> {
    let wanted = FetchRequest { url, timeouts, checksum: None, strict: true };
    let (_, bytes) = receive(&wanted, &Arc::default(), "reading a text", move |source| {
        let mut bytes = Vec::new();
        let read = source.take(most).read_to_end(&mut bytes);
        read.map(|_| bytes).map_err(|_| Error::Stopped)
    })
    .await?;
    Ok(bytes)
}

/// Downloads `url` as text. Returns at most `most` bytes; the rest is dropped.
///
/// # Errors
/// The download fails.
pub async fn read_text(url: &Url, most: u64, timeouts: Timeouts) -> Result<String, Error> {
    let bytes = read_bytes(url, most, timeouts).await?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Downloads `url` to `file`. Returns the length in bytes. A wrong checksum is an error.
///
/// # Errors
/// The download fails, or [`Error::Io`]: the file system is full.
pub async fn read_into(
    url: &Url,
    checksum: &Checksum,
    timeouts: Timeouts,
    mut file: File,
) -> Result<u64, Error> {
    let wanted = FetchRequest { url, timeouts, checksum: Some(checksum), strict: true };
    let doing = format!("store {url} in memory");
    let work = move |mut source| {
        std::io::copy(&mut source, &mut file).map_err(|error| match error.raw_os_error() {
            Some(_) => Error::Io { doing, source: error },
            None => Error::Stopped,
        })
    };
    let (fetched, length) = receive(&wanted, &Arc::default(), "keeping a file", work).await?;
    // `None` means that the reader ended before the end of the stream, which this reader never
    // does.
    fetched.map(|_| length).ok_or(Error::Stopped)
}
