//! Writes an image from a URL to a disk in constant memory. An interrupted download resumes. The
//! checksum covers the downloaded bytes, not decoded. Download, decoding and writing run in
//! parallel.
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
//! Zeros that the server reports as holes are not downloaded ([`http1::holes`]).
//!
//! The kernel copies each byte once, from the socket into a piece of aligned memory. Checksum and
//! decoder read the piece. A raw image is written directly from the piece.
//!
//! A qcow2 image is not a stream: [`ranges`] reads its parts by offset. If the action has a
//! checksum, the whole file is first downloaded for verification, in the same version.
//!
//! The first 4 MiB are written last, after the checksum is verified. Until then the beginning of
//! the disk is zeros, so that neither a power failure nor a wrong image leaves a bootable disk.

mod archive;
mod checksum;
mod decode;
mod fetch;
mod http1;
mod piece;
mod ranges;
#[cfg(test)]
mod tests;
mod timeouts;
mod url;
mod whole;
mod write;

use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::runtime::Handle;

pub use crate::disks::disk::Accept;
pub use crate::task::{blocking, crashed};
pub use archive::{Archive, read_archive, read_document};
pub use checksum::sums::{NoSum, find_sum};
pub use checksum::{Algorithm, Checksum};
pub use decode::qcow2;
pub use http1::connection::{NoConnection, connect};
pub use timeouts::Timeouts;
pub use url::Url;
pub use whole::{read_bytes, read_into, read_text};

use crate::disks::disk::Disk;
use crate::meter::StopOnDrop;
use crate::{Error, Meter};
use checksum::sums;
use decode::{Decoder, Format};
use fetch::{FetchRequest, FetchSummary};
use piece::Source;
use ranges::Ranges;
use write::{StagedImage, StreamOutcome, WriteOptions};

/// Maximum number of downloads of an image that changes on the server during the download.
const BEGINNINGS: u32 = 3;

/// Expected checksum of the downloaded, still compressed bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Proof {
    /// Checksum from the action's settings.
    Sum(Checksum),
    /// URL of a file of checksums, in which a line matches the path of the image's URL.
    Sums(Url),
}

/// Image to write, and its target disk.
#[derive(Debug, Clone)]
pub struct Image {
    /// URL of the image.
    pub url: Url,
    /// Expected checksum; `None` for no check.
    pub proof: Option<Proof>,
    /// True to refuse an uncompressed image.
    pub compressed: bool,
    /// True to read the disk back after writing and compare it with the image.
    pub read_back: bool,
    /// Device path or selector of the target disk.
    pub disk: PathBuf,
    /// Allowed kinds of targets: block devices, or also regular files.
    pub accept: Accept,
    /// Timeouts and retry intervals of the download.
    pub timeouts: Timeouts,
}

/// Byte counts and checksum of a written image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Number of downloaded bytes.
    pub fetched: u64,
    /// Length of the decoded image in bytes.
    pub image: u64,
    /// Bytes of zeros that were punched as holes instead of written.
    pub holes: u64,
    /// Verified checksum; `None` without an expected checksum.
    pub verified: Option<Checksum>,
}

/// Writes an image to its disk. Dropping the future stops the work at its next step.
///
/// # Errors
/// The download, the image or the disk failed. The disk is not bootable then, or unchanged.
pub async fn write_image(image: &Image, meter: &Arc<Meter>) -> Result<Summary, Error> {
    let _stop = StopOnDrop(meter.clone());
    let mut beginning = 1;
    loop {
        match write_once(image, meter).await {
            Err(Error::Changed { url }) if beginning < BEGINNINGS => {
                tracing::warn!(%url, "the image changed during the download: starting again");
                beginning += 1;
            }
            result => return result,
        }
    }
}

async fn write_once(image: &Image, meter: &Arc<Meter>) -> Result<Summary, Error> {
    let checksum = expected(&image.url, image.proof.as_ref(), image.timeouts).await?;
    let (path, accept) = (image.disk.clone(), image.accept);
    meter.say(format!("waiting for {}", path.display()));
    let disk = blocking("opening the disk", move || Disk::open(&path, accept)).await?;
    meter.say(format!("writing {} to {}", image.url, image.disk.display()));

    let asked = WriteOptions { compressed: image.compressed, read_back: image.read_back };
    let (url, timeouts) = (&image.url, image.timeouts);
    let wanted = FetchRequest { url, timeouts, checksum: checksum.as_ref(), strict: true };
    let meter_of_writer = meter.clone();
    let streamed = receive(&wanted, meter, "writing the image", move |source| {
        write::run(source, disk, asked, &meter_of_writer)
    });
    let verified = checksum.clone();
    let (fetched, staged) = match streamed.await? {
        (Some(fetched), StreamOutcome::StagedImage(staged)) => (fetched, staged),
        (None, StreamOutcome::StagedImage(_)) => return Err(Error::Stopped),
        (_, StreamOutcome::Qcow2(disk)) => {
            let (length, staged) = write_qcow2(&wanted, disk, asked, meter).await?;
            let summary = finish(staged, meter).await?;
            return Ok(Summary { fetched: length, verified, ..summary });
        }
    };
    let summary = finish(staged, meter).await?;
    Ok(Summary { fetched: fetched.length, verified, ..summary })
}

async fn finish(staged: StagedImage, meter: &Arc<Meter>) -> Result<Summary, Error> {
    meter.say("flushing the disk");
    let (image, holes, meter) = (staged.length, staged.holes, meter.clone());
    blocking("finishing the disk", move || staged.commit(&meter)).await?;
    Ok(Summary { fetched: 0, image, holes, verified: None })
}

/// Downloads a URL into the blocking reader `work`. The first value is `None` if `work` succeeds
/// before the end of the stream.
async fn receive<T: Send + 'static>(
    wanted: &FetchRequest<'_>,
    meter: &Arc<Meter>,
    part: &'static str,
    work: impl FnOnce(Source) -> Result<T, Error> + Send + 'static,
) -> Result<(Option<FetchSummary>, T), Error> {
    let (sink, source) = piece::channel(wanted.url.clone());
    let working = blocking(part, move || work(source));
    match tokio::join!(fetch::run(wanted, meter, sink), working) {
        (Ok(fetched), Ok(done)) => Ok((Some(fetched), done)),
        (Err(Error::Stopped), Ok(done)) => Ok((None, done)),
        // A failure of one side makes the other side fail too. The first cause is reported.
        (Err(Error::Stopped), Err(error)) | (Err(error), _) | (Ok(_), Err(error)) => Err(error),
    }
}

/// Writes a qcow2 image, with reads by offset. Returns the length of the qcow2 file too.
async fn write_qcow2(
    wanted: &FetchRequest<'_>,
    disk: Disk,
    asked: WriteOptions,
    meter: &Arc<Meter>,
) -> Result<(u64, StagedImage), Error> {
    let mut verified = None;
    if wanted.checksum.is_some() {
        meter.say(format!("verifying {}", wanted.url));
        let (fetched, ()) = receive(wanted, meter, "verifying the image", read_to_end).await?;
        verified = fetched.and_then(|fetched| fetched.validator);
        meter.say(format!("writing {} to {}", wanted.url, disk.path().display()));
    }
    let (checked, url, timeouts) = (wanted.checksum.is_some(), wanted.url.clone(), wanted.timeouts);
    let (meter, runtime) = (meter.clone(), Handle::current());
    blocking("writing the image", move || {
        let ranges = Ranges::open(url.clone(), timeouts, meter.clone(), runtime)?;
        if checked && ranges.validator() != verified.as_ref() {
            return Err(Error::Changed { url: url.to_string() });
        }
        let (length, shown) = (qcow2::Storage::length(&ranges), url.to_string());
        let image = qcow2::Disk::open(ranges)
            .map_err(|error| write::undecoded(Format::Qcow2.name(), &shown, error))?;
        write::target::check_size(&disk, image.size(), &shown)?;
        meter.set_total(image.size());
        let metered = MeteredReader { inner: image, done: 0, meter: meter.clone() };
        let decoder = Decoder::of(Format::Qcow2, Box::new(metered));
        Ok((length, write::write(decoder, disk, asked, &url, &meter)?))
    })
    .await
}

/// Reader that sets the meter to the number of read bytes.
struct MeteredReader<R> {
    inner: R,
    done: u64,
    meter: Arc<Meter>,
}

impl<R: Read> Read for MeteredReader<R> {
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

/// Returns the expected checksum. For [`Proof::Sums`], downloads the file of checksums.
async fn expected(
    url: &Url,
    proof: Option<&Proof>,
    timeouts: Timeouts,
) -> Result<Option<Checksum>, Error> {
    let sums = match proof {
        None => return Ok(None),
        Some(Proof::Sum(checksum)) => return Ok(Some(checksum.clone())),
        Some(Proof::Sums(sums)) => sums,
    };
    let text = sums::decode(&read_bytes(sums, sums::SUMS_BYTES, timeouts).await?);
    find_sum(&text, url.path()).map(Some).map_err(|why| {
        let (sums, name) = (sums.to_string(), url.file_name().to_owned());
        match why {
            NoSum::Missing => Error::NoSum { sums, name },
            NoSum::Several(first, second) => Error::SeveralSums { sums, name, first, second },
        }
    })
}
