//! An image from a URL to a disk: fetched with resumption, summed as served, decoded and written
//! on the way, in constant memory.
//!
//! ```text
//!                  ┌─ pieces ──▶ sum (thread)
//! fetch (async) ───┤
//!   resumes        ├─ pieces ──▶ decode (thread) ── 4 MiB buffers ──▶ write (thread)
//!                  │               gzip, xz, zstd, bzip2, lz4
//!                  └─ pieces of a raw image ───────────────────────▶ write (thread)
//!                                                           direct I/O, holes for zeros
//! ```
//!
//! Zeros that the server tells of are not fetched ([`holes`]).
//!
//! A byte is copied once, by the kernel, from the socket into a piece: aligned memory that the sum
//! and the decoder read, and the disk is written from when there is nothing to decode.
//!
//! A qcow2 image is no stream: it is read by [`ranges`], part by part, and when it has a checksum
//! it is fetched once before for that, of the same version.
//!
//! The first buffer is written last, once the checksum is known to be right: until then the disk's
//! beginning is zeros, so that neither a power cut nor a wrong image leaves something that boots.

mod archive;
mod body;
mod check;
mod checksum;
mod connection;
mod decode;
mod fetch;
mod gpt;
mod holes;
mod http1;
mod lz4;
mod members;
mod patience;
mod piece;
pub mod qcow2;
mod ranges;
mod readback;
mod sparse;
mod summing;
mod sums;
mod target;
#[cfg(test)]
mod tests;
mod url;
mod validator;
mod whole;
mod write;

use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::runtime::Handle;

pub use crate::disk::Accept;
pub use archive::{Archive, read_archive, read_document};
pub use checksum::{Algorithm, Checksum};
pub use connection::{NoConnection, connect};
pub use patience::Patience;
pub use sums::{NoSum, find_sum};
pub use url::Url;
pub use whole::{read_bytes, read_into, read_text};

use crate::disk::Disk;
use crate::meter::StopOnDrop;
use crate::select;
use crate::{Error, Meter};
use decode::{Decoder, Format};
use fetch::{Fetched, Wanted};
use piece::Source;
use ranges::Ranges;
use write::{Asked, Staged, Streamed};

/// How often an image that changes under our hands is begun anew.
const BEGINNINGS: u32 = 3;

/// What the stream as served, that is, compressed, must hash to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Proof {
    /// This.
    Sum(Checksum),
    /// Sum that a file of sums has for the path that the image's URL ends with.
    Sums(Url),
}

/// What to write and where.
#[derive(Debug, Clone)]
pub struct Image {
    /// Where it is served.
    pub url: Url,
    /// How to know that it is the right one.
    pub proof: Option<Proof>,
    /// Whether an image that is not compressed is a mistake.
    pub compressed: bool,
    /// Whether to read the disk back and compare.
    pub read_back: bool,
    /// The disk.
    pub disk: PathBuf,
    /// Whether the disk may be a regular file.
    pub accept: Accept,
    /// How long to wait for a server that is away.
    pub patience: Patience,
}

/// What was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Bytes as served.
    pub fetched: u64,
    /// Bytes of the decoded image.
    pub image: u64,
    /// Of those, bytes that were zeros and never sent to the disk.
    pub holes: u64,
    /// The sum that was asked for and is right.
    pub verified: Option<Checksum>,
}

/// Write the image. Dropping the future stops the work at its next step.
///
/// # Errors
/// A sentence for the operator; nothing on the disk boots then, or nothing was written.
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
    let checksum = expected(&image.url, image.proof.as_ref(), image.patience).await?;
    let (path, accept) = (image.disk.clone(), image.accept);
    meter.say(format!("waiting for {}", path.display()));
    let disk = blocking("opening the disk", move || Disk::open(&path, accept)).await?;
    meter.say(format!("writing {} to {}", image.url, image.disk.display()));

    let asked = Asked { compressed: image.compressed, read_back: image.read_back };
    let (url, patience) = (&image.url, image.patience);
    let wanted = Wanted { url, patience, checksum: checksum.as_ref(), strict: true };
    let meter_of_writer = meter.clone();
    let streamed = receive(&wanted, meter, "writing the image", move |source| {
        write::run(source, disk, asked, &meter_of_writer)
    });
    let verified = checksum.clone();
    let (fetched, staged) = match streamed.await? {
        (Some(fetched), Streamed::Staged(staged)) => (fetched, staged),
        (None, Streamed::Staged(_)) => return Err(Error::Stopped),
        (_, Streamed::Qcow2(disk)) => {
            let (length, staged) = write_qcow2(&wanted, disk, asked, meter).await?;
            let summary = finish(staged, meter).await?;
            return Ok(Summary { fetched: length, verified, ..summary });
        }
    };
    let summary = finish(staged, meter).await?;
    Ok(Summary { fetched: fetched.length, verified, ..summary })
}

async fn finish(staged: Staged, meter: &Arc<Meter>) -> Result<Summary, Error> {
    meter.say("flushing the disk");
    let (image, holes, meter) = (staged.length, staged.holes, meter.clone());
    blocking("finishing the disk", move || staged.commit(&meter)).await?;
    Ok(Summary { fetched: 0, image, holes, verified: None })
}

/// Fetch into a blocking reader. When the reader is content before the end, what was fetched is
/// `None`.
async fn receive<T: Send + 'static>(
    wanted: &Wanted<'_>,
    meter: &Arc<Meter>,
    part: &'static str,
    work: impl FnOnce(Source) -> Result<T, Error> + Send + 'static,
) -> Result<(Option<Fetched>, T), Error> {
    let (sink, source) = piece::channel(wanted.url.clone());
    let working = blocking(part, move || work(source));
    match tokio::join!(fetch::run(wanted, meter, sink), working) {
        (Ok(fetched), Ok(done)) => Ok((Some(fetched), done)),
        (Err(Error::Stopped), Ok(done)) => Ok((None, done)),
        // When one side fails the other fails for want of it: tell the cause, not the consequence.
        (Err(Error::Stopped), Err(error)) | (Err(error), _) | (Ok(_), Err(error)) => Err(error),
    }
}

/// A qcow2 image, read where its clusters are. Returns the file's length beside.
async fn write_qcow2(
    wanted: &Wanted<'_>,
    disk: Disk,
    asked: Asked,
    meter: &Arc<Meter>,
) -> Result<(u64, Staged), Error> {
    let mut verified = None;
    if wanted.checksum.is_some() {
        meter.say(format!("verifying {}", wanted.url));
        let (fetched, ()) = receive(wanted, meter, "verifying the image", read_to_end).await?;
        verified = fetched.and_then(|fetched| fetched.validator);
        meter.say(format!("writing {} to {}", wanted.url, disk.path().display()));
    }
    let (checked, url, patience) = (wanted.checksum.is_some(), wanted.url.clone(), wanted.patience);
    let (meter, runtime) = (meter.clone(), Handle::current());
    blocking("writing the image", move || {
        let ranges = Ranges::open(url.clone(), patience, meter.clone(), runtime)?;
        if checked && ranges.validator() != verified.as_ref() {
            return Err(Error::Changed { url: url.to_string() });
        }
        let (length, shown) = (qcow2::Storage::length(&ranges), url.to_string());
        let image = qcow2::Disk::open(ranges)
            .map_err(|error| write::undecoded(Format::Qcow2.name(), &shown, error))?;
        target::check_size(&disk, image.size(), &shown)?;
        meter.set_total(image.size());
        let metered = Metered { inner: image, done: 0, meter: meter.clone() };
        let decoder = Decoder::of(Format::Qcow2, Box::new(metered));
        Ok((length, write::write(decoder, disk, asked, &url, &meter)?))
    })
    .await
}

/// Tells how much was read of it.
struct Metered<R> {
    inner: R,
    done: u64,
    meter: Arc<Meter>,
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let count = self.inner.read(out)?;
        self.done += count as u64;
        self.meter.set_done(self.done);
        Ok(count)
    }
}

fn read_to_end(mut source: Source) -> Result<(), Error> {
    std::io::copy(&mut source, &mut std::io::sink()).map(|_| ()).map_err(|_| Error::Stopped)
}

/// The sum that is to be met, looked up where that is asked for.
async fn expected(
    url: &Url,
    proof: Option<&Proof>,
    patience: Patience,
) -> Result<Option<Checksum>, Error> {
    let sums = match proof {
        None => return Ok(None),
        Some(Proof::Sum(checksum)) => return Ok(Some(checksum.clone())),
        Some(Proof::Sums(sums)) => sums,
    };
    let text = sums::decode(&read_bytes(sums, sums::SUMS_BYTES, patience).await?);
    find_sum(&text, url.path()).map(Some).map_err(|why| {
        let (sums, name) = (sums.to_string(), url.file_name().to_owned());
        match why {
            NoSum::Missing => Error::NoSum { sums, name },
            NoSum::Several(first, second) => Error::SeveralSums { sums, name, first, second },
        }
    })
}

/// Run blocking work; a panic in it becomes an error.
pub async fn blocking<T: Send + 'static>(
    part: &'static str,
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    match tokio::task::spawn_blocking(select::in_scope(work)).await {
        Ok(result) => result,
        Err(error) => Err(crashed(part, error)),
    }
}

/// A task's end by panic, as a sentence.
pub fn crashed(part: &'static str, error: tokio::task::JoinError) -> Error {
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
