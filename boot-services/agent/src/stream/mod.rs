//! An image from a URL to a disk: fetched with resumption, hashed as served, decoded and written
//! on the way, in constant memory.
//!
//! ```text
//! fetch (async) ── pieces ──▶ decode (thread) ── 4 MiB buffers ──▶ write (thread)
//!   hashes, resumes            gzip, xz, zstd                      direct I/O, holes for zeros
//! ```
//!
//! The first buffer is written last, once the checksum is known to be right: until then the disk's
//! beginning is zeros, so that neither a power cut nor a wrong image leaves something that boots.

mod decode;
mod fetch;
mod http1;
mod piece;
#[cfg(test)]
mod tests;
mod url;
mod write;

use std::path::PathBuf;
use std::sync::Arc;

pub use crate::disk::Accept;
pub use fetch::Patience;
pub use url::Url;

use crate::disk::Disk;
use crate::{Error, Meter};
use write::Staged;

/// How often an image that changes under our hands is begun anew.
const BEGINNINGS: u32 = 3;

/// What to write and where.
#[derive(Debug, Clone)]
pub struct Image {
    /// Where it is served.
    pub url: Url,
    /// SHA-256 of the stream as served, that is, compressed.
    pub sha256: Option<[u8; 32]>,
    /// Whether an image that is not compressed is a mistake.
    pub compressed: bool,
    /// The disk.
    pub disk: PathBuf,
    /// Whether the disk may be a regular file.
    pub accept: Accept,
    /// How long to wait for a server that is away.
    pub patience: Patience,
}

/// What was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Summary {
    /// Bytes as served.
    pub fetched: u64,
    /// Bytes of the decoded image.
    pub image: u64,
    /// Of those, bytes that were zeros and never sent to the disk.
    pub holes: u64,
    /// SHA-256 of the bytes as served.
    pub sha256: [u8; 32],
}

/// Write the image. Dropping the future stops the work at its next step.
///
/// # Errors
/// A sentence for the operator; nothing on the disk boots then.
pub async fn write_image(image: &Image, meter: &Arc<Meter>) -> Result<Summary, Error> {
    let _stop = StopOnDrop(meter.clone());
    let mut beginning = 1;
    loop {
        match write_once(image, meter).await {
            Err(Error::Changed { url }) if beginning < BEGINNINGS => {
                tracing::warn!(%url, "the image changed while it was being read: begin anew");
                beginning += 1;
            }
            result => return result,
        }
    }
}

async fn write_once(image: &Image, meter: &Arc<Meter>) -> Result<Summary, Error> {
    let (path, accept) = (image.disk.clone(), image.accept);
    meter.say(format!("waiting for {}", path.display()));
    let disk = blocking("opening the disk", move || Disk::open(&path, accept)).await?;
    meter.say(format!("writing {} to {}", image.url, image.disk.display()));

    let (sink, source) = piece::channel(image.url.clone());
    let (meter_of_writer, compressed) = (meter.clone(), image.compressed);
    let writing = blocking("writing the image", move || {
        write::run(source, disk, compressed, &meter_of_writer)
    });
    let fetching = fetch::run(image, meter, sink);
    let (fetched, staged) = tokio::join!(fetching, writing);
    let (fetched, staged) = first_cause(fetched, staged)?;

    check_digest(image, &fetched.sha256)?;
    meter.say("flushing the disk");
    let (length, holes) = (staged.length, staged.holes);
    blocking("finishing the disk", move || staged.commit()).await?;
    Ok(Summary { fetched: fetched.length, image: length, holes, sha256: fetched.sha256 })
}

/// When one side fails the other fails for want of it: tell the cause, not the consequence.
fn first_cause(
    fetched: Result<fetch::Fetched, Error>,
    staged: Result<Staged, Error>,
) -> Result<(fetch::Fetched, Staged), Error> {
    match (fetched, staged) {
        (Ok(fetched), Ok(staged)) => Ok((fetched, staged)),
        (Err(Error::Stopped), Err(error)) | (Err(error), _) | (Ok(_), Err(error)) => Err(error),
    }
}

fn check_digest(image: &Image, actual: &[u8; 32]) -> Result<(), Error> {
    match image.sha256 {
        Some(expected) if expected != *actual => Err(Error::Digest {
            actual: stdx::hex(actual),
            expected: stdx::hex(&expected),
            url: image.url.to_string(),
        }),
        _ => Ok(()),
    }
}

struct StopOnDrop(Arc<Meter>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Run blocking work; a panic in it becomes an error.
pub(crate) async fn blocking<T: Send + 'static>(
    part: &'static str,
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(crashed(part, error)),
    }
}

/// A task's end by panic, as a sentence.
pub(crate) fn crashed(part: &'static str, error: tokio::task::JoinError) -> Error {
    let reason = match error.try_into_panic() {
        Ok(payload) => panic_text(&*payload),
        Err(error) => error.to_string(),
    };
    Error::Crashed { part, reason }
}

/// The text of a panic.
fn panic_text(payload: &(dyn std::any::Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no reason given".to_owned())
}
