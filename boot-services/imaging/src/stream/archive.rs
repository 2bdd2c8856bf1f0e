//! Downloads of archives and documents, which are not written to a disk as images.

use std::io::Read;
use std::sync::{Arc, Mutex, PoisonError};

use super::checksum::Hasher;
use super::decode::{Decoder, Format, detect};
use super::fetch::FetchRequest;
use super::timeouts::Timeouts;
use super::write::undecoded;
use super::{Checksum, StopOnDrop, Url, receive};
use crate::{Error, Meter};

/// Archive or document to download.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Archive {
    /// URL of the archive.
    pub url: Url,
    /// Expected checksum, of the compressed or of the decompressed archive: users state the first,
    /// upstream's action compares the second. `None` for no check.
    pub checksum: Option<Checksum>,
}

/// Downloads and decodes an archive, and passes it to `work`, which must read all of it. Returns
/// the number of downloaded bytes too. Dropping the future stops `work` at its next read.
///
/// After an error, `work` may have read wrong bytes: the checksum is verified at the end.
pub async fn read_archive<T: Send + 'static>(
    archive: &Archive,
    timeouts: Timeouts,
    meter: &Arc<Meter>,
    work: impl FnOnce(&mut dyn Read) -> Result<T, Error> + Send + 'static,
) -> Result<(T, u64), Error> {
    let _stop = StopOnDrop(meter.clone());
    let expected = archive.checksum.as_ref();
    let wanted = FetchRequest { url: &archive.url, timeouts, checksum: expected, strict: false };
    let hasher = expected.map(|checksum| Hasher::new(checksum.algorithm()));
    let reading = receive(&wanted, meter, "reading the archive", move |mut source| {
        let url = source.url.to_string();
        if detect(&mut source)? == Format::Qcow2 {
            let found = "a qcow2 image instead of an archive".to_owned();
            return Err(Error::Format { url, found });
        }
        let decoder = Decoder::new(source)?;
        let failed = Arc::new(Mutex::new(None));
        let format = decoder.format.name();
        let mut reader = HashingReader { decoder, hasher, failed: failed.clone() };
        let done = work(&mut reader);
        // The reader's own error is more precise than the resulting error of `work`.
        let failed = failed.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(error) = failed {
            return Err(undecoded(format, &url, error));
        }
        Ok((done?, reader.hasher.map(Hasher::finish)))
    });
    let (fetched, (done, decoded)) = reading.await?;
    let fetched = fetched.ok_or(Error::Stopped)?;
    match expected {
        Some(expected)
            if fetched.sum.as_ref() != Some(expected) && decoded.as_ref() != Some(expected) =>
        {
            let actual = fetched.sum.ok_or(Error::Stopped)?;
            Err(expected.missed(&archive.url, &actual))
        }
        _ => Ok((done, fetched.length)),
    }
}

/// Downloads a document of at most `most` bytes into memory. Verifies its checksum if there is one.
///
/// A longer document is an error.
pub async fn read_document(
    document: &Archive,
    most: u64,
    timeouts: Timeouts,
    meter: &Arc<Meter>,
) -> Result<Vec<u8>, Error> {
    let checksum = document.checksum.as_ref();
    let wanted = FetchRequest { url: &document.url, timeouts, checksum, strict: true };
    let (_, bytes) = receive(&wanted, meter, "reading a document", move |source| {
        let mut bytes = Vec::new();
        source.take(most + 1).read_to_end(&mut bytes).map_err(|_| Error::Stopped)?;
        Ok(bytes)
    })
    .await?;
    if bytes.len() as u64 > most {
        let reason = format!("it has more than {}", stdx::bytes(most));
        return Err(Error::Url { url: document.url.to_string(), reason });
    }
    Ok(bytes)
}

struct HashingReader {
    decoder: Decoder,
    hasher: Option<Hasher>,
    failed: Arc<Mutex<Option<std::io::Error>>>,
}

impl Read for HashingReader {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let count = match self.decoder.read(out) {
            Ok(count) => count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => return Err(error),
            Err(error) => {
                let copy = std::io::Error::new(error.kind(), error.to_string());
                *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                return Err(copy);
            }
        };
        if let Some(hasher) = &mut self.hasher {
            hasher.update(&out[..count]);
        }
        Ok(count)
    }
}
