//! The download: every byte once and in order, whatever the connection does, read from the socket
//! into the buffers that it is written to the disk from.
//!
//! After a cut the rest is asked for with Range and If-Range (RFC 9110 sections 13.1.5 and 14.2).
//! A server that sends everything again is read again. That it is the same image is known by its
//! strong validator (section 8.8.1), or what was already used is compared by its sum: two different
//! images are never spliced. So a sum is computed where one is to be met and where there is no such
//! validator.

use std::time::{Duration, Instant};

use http::header::{self, HeaderMap, HeaderValue};
use http::{Response, StatusCode};
use stdx::Backoff;

use super::Url;
use super::checksum::{Algorithm, Checksum, Hasher};
use super::http1::{self, Answer, Failure};
use super::piece::{Filling, Sink};
use super::summing::Summing;
use super::validator::{self, Validator};
use crate::{Error, Meter};

/// How long the download waits for a server that is away or silent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// A connection without a byte for this long is given up.
    pub stall: Duration,
    /// An image without a new byte for this long is given up.
    pub silence: Duration,
    /// The first wait between two attempts; it doubles.
    pub first_wait: Duration,
    /// The longest wait between two attempts.
    pub longest_wait: Duration,
}

impl Patience {
    /// A box may take some minutes to come back after its own update.
    pub const DEFAULT: Self = Self {
        stall: Duration::from_secs(30),
        silence: Duration::from_secs(600),
        first_wait: Duration::from_millis(250),
        longest_wait: Duration::from_secs(5),
    };
}

/// How often in a row a server may send everything again without getting further.
const REPEATS: u32 = 10;
/// What comes again is read into a buffer of this size.
const AGAIN: usize = 64 << 10;

/// What to fetch.
pub(super) struct Wanted<'a> {
    pub(super) url: &'a Url,
    pub(super) patience: Patience,
    /// What it must hash to.
    pub(super) checksum: Option<&'a Checksum>,
    /// Whether another sum is an error, and not for the caller to judge.
    pub(super) strict: bool,
}

/// A finished download.
pub(super) struct Fetched {
    pub(super) length: u64,
    pub(super) validator: Option<Validator>,
    /// Computed as the wanted one; without one, SHA-256 where it was needed.
    pub(super) sum: Option<Checksum>,
}

/// Fetch all of it into `sink`; its checksum is right then, but what was passed on before is gone.
pub(super) async fn run(wanted: &Wanted<'_>, meter: &Meter, sink: Sink) -> Result<Fetched, Error> {
    let mut download = Download {
        url: wanted.url,
        patience: wanted.patience,
        checksum: wanted.checksum,
        strict: wanted.strict,
        meter,
        sink,
        filling: None,
        summing: None,
        offset: 0,
        total: None,
        validator: None,
        newest: Instant::now(),
        repeats: 0,
    };
    let mut backoff = Backoff::new(wanted.patience.first_wait, wanted.patience.longest_wait);
    loop {
        let before = download.offset;
        let reason = match download.attempt().await {
            Ok(()) => return download.finish().await,
            Err(Failure::Fatal(error)) => return Err(error),
            Err(Failure::Transient(reason)) => reason,
        };
        if download.offset > before {
            backoff.reset();
        }
        download.lose_patience(&reason)?;
        let (url, at) = (&wanted.url, stdx::bytes(download.offset));
        tracing::warn!(%url, at, reason, "download interrupted, trying again");
        tokio::time::sleep(backoff.next_wait()).await;
    }
}

struct Download<'a> {
    url: &'a Url,
    patience: Patience,
    /// With one a wrong splice is found out in the end; without, a validator must rule it out
    /// beforehand.
    checksum: Option<&'a Checksum>,
    strict: bool,
    meter: &'a Meter,
    sink: Sink,
    /// The piece that was not passed on yet.
    filling: Option<Filling>,
    /// The sum of all that was passed on.
    summing: Option<Summing>,
    /// Bytes that came so far.
    offset: u64,
    total: Option<u64>,
    validator: Option<Validator>,
    /// When the last new byte came.
    newest: Instant,
    repeats: u32,
}

/// Bytes that come again.
struct Repeat {
    left: u64,
    /// Of them, to be compared; not where the server vouches for them.
    sum: Option<Hasher>,
}

impl Download<'_> {
    fn lose_patience(&self, reason: &str) -> Result<(), Error> {
        let waited = self.newest.elapsed();
        if waited < self.patience.silence && self.repeats <= REPEATS {
            return Ok(());
        }
        Err(Error::GaveUp {
            url: self.url.to_string(),
            offset: self.offset,
            waited,
            reason: reason.to_owned(),
        })
    }

    async fn finish(mut self) -> Result<Fetched, Error> {
        self.pass_on().await?;
        let sum = match self.summing.take() {
            Some(summing) => Some(summing.finish().await?),
            None => None,
        };
        let wrong = |expected: &&Checksum| self.strict && sum.as_ref() != Some(*expected);
        if let Some(expected) = self.checksum.filter(wrong) {
            let actual = sum.as_ref().ok_or(Error::Stopped)?;
            return Err(mismatch(self.url, actual, expected));
        }
        self.sink.end().await.map_err(|_| Error::Stopped)?;
        Ok(Fetched { length: self.offset, validator: self.validator, sum })
    }

    /// One connection; `Ok` when the image is complete.
    async fn attempt(&mut self) -> Result<(), Failure> {
        let mut answer = http1::get(self.url, &self.range()).await?;
        if self.offset > 0 && whole_length(&answer.head) == Some(self.offset) {
            return Ok(());
        }
        let repeat = match self.begin(&answer.head) {
            Err(Failure::Transient(reason)) => {
                let said = answer.sentence().await;
                return Err(Failure::Transient(format!("{reason}{said}")));
            }
            Err(Failure::Fatal(Error::Status { url, status })) => {
                let said = answer.sentence().await;
                return Err(Failure::Fatal(Error::Status { url, status: status + &said }));
            }
            begun => begun?,
        };
        self.read_again(&mut answer, repeat).await?;
        while self.read(&mut answer).await? > 0 {}
        match self.total {
            Some(total) if self.offset != total => Err(Failure::Transient(format!(
                "the connection ended at {} of {total} bytes",
                self.offset
            ))),
            _ => Ok(()),
        }
    }

    /// The fields that ask for the rest.
    fn range(&self) -> HeaderMap {
        let mut fields = HeaderMap::new();
        if self.offset == 0 || (self.validator.is_none() && self.checksum.is_none()) {
            return fields;
        }
        if let Ok(range) = HeaderValue::from_str(&format!("bytes={}-", self.offset)) {
            fields.insert(header::RANGE, range);
        }
        if let Some(Validator::Strong(tag)) = &self.validator {
            fields.insert(header::IF_RANGE, tag.clone());
        }
        fields
    }

    /// Judge the answer's head; what of the body is a repetition.
    fn begin(&mut self, response: &Response<()>) -> Result<Repeat, Failure> {
        let status = response.status();
        match status {
            StatusCode::OK | StatusCode::PARTIAL_CONTENT => {}
            StatusCode::RANGE_NOT_SATISFIABLE if self.offset > 0 => {
                return Err(Failure::Fatal(self.changed()));
            }
            _ if validator::may_pass(status) => {
                return Err(Failure::Transient(format!("the server answered {status}")));
            }
            _ => {
                let (url, status) = (self.url.to_string(), status.to_string());
                return Err(Failure::Fatal(Error::Status { url, status }));
            }
        }
        let coding = response.headers().get(header::CONTENT_ENCODING);
        if coding.is_some_and(|coding| coding != "identity") {
            let reason = "the server applies a content coding, which would change the checksum";
            let url = self.url.to_string();
            return Err(Failure::Fatal(Error::Url { url, reason: reason.to_owned() }));
        }
        if self.checksum.is_none() && !bounded(response.headers()) {
            return Err(Failure::Fatal(Error::Unbounded { url: self.url.to_string() }));
        }
        let (start, total) = validator::extent(response)
            .ok_or_else(|| Failure::Transient("the answer's Content-Range is unusable".into()))?;
        let vouched = self.recognise(response.headers(), total)?;
        if status == StatusCode::PARTIAL_CONTENT && start != self.offset {
            let reason = format!("asked for byte {}, the answer begins at {start}", self.offset);
            return Err(Failure::Transient(reason));
        }
        if start == 0 && self.offset > 0 {
            self.repeats += 1;
        }
        let left = self.offset - start.min(self.offset);
        let sum = self.summing.as_ref().map(|summing| Hasher::new(summing.algorithm()));
        if left > 0 && sum.is_none() && !vouched {
            return Err(Failure::Fatal(self.changed()));
        }
        Ok(Repeat { left, sum })
    }

    /// Make sure that this is the image the download began with; whether its server vouches for
    /// it byte by byte.
    fn recognise(&mut self, headers: &HeaderMap, total: Option<u64>) -> Result<bool, Failure> {
        let validator = Validator::of(headers);
        let strong = matches!(validator, Some(Validator::Strong(_)));
        if self.offset == 0 {
            self.validator = validator;
            self.total = total;
            self.meter.set_total(total.unwrap_or(0));
            let wanted = self.checksum.map(Checksum::algorithm);
            let algorithm = wanted.or_else(|| (!strong).then_some(Algorithm::Sha256));
            self.summing = algorithm.map(Summing::start);
            return Ok(strong);
        }
        let other = |ours: bool| if ours { Ok(()) } else { Err(Failure::Fatal(self.changed())) };
        other(self.total.is_none() || total.is_none() || self.total == total)?;
        other(self.validator.is_none() || validator.is_none() || self.validator == validator)?;
        Ok(strong && self.validator == validator)
    }

    /// Read what came before, and make sure of it.
    async fn read_again(&mut self, answer: &mut Answer, again: Repeat) -> Result<(), Failure> {
        let Repeat { mut left, mut sum } = again;
        if left == 0 {
            return Ok(());
        }
        let mut buffer = vec![0; AGAIN];
        while left > 0 {
            let most = usize::try_from(left).unwrap_or(AGAIN).min(AGAIN);
            let count = answer.read(&mut buffer[..most], self.patience.stall).await?;
            if count == 0 {
                // Without a stated length it may have been the whole of another image.
                return Err(Failure::Fatal(self.changed()));
            }
            if let Some(sum) = &mut sum {
                sum.update(&buffer[..count]);
            }
            left -= count as u64;
        }
        if let (Some(sum), Some(summing)) = (sum, &self.summing) {
            let mut known = summing.so_far().await.map_err(Failure::Fatal)?;
            known.update(self.filling.as_ref().map(Filling::bytes).unwrap_or_default());
            if known.finish() != sum.finish() {
                return Err(Failure::Fatal(self.changed()));
            }
        }
        Ok(())
    }

    /// Read what is new, as much as has come; 0 at the end.
    async fn read(&mut self, answer: &mut Answer) -> Result<usize, Failure> {
        if self.sink.is_closed() {
            return Err(Failure::Fatal(Error::Stopped));
        }
        let filling = match &mut self.filling {
            Some(filling) => filling,
            none => {
                let buffer = self.sink.buffer().await;
                // A slow disk is no fault of the server's.
                self.newest = Instant::now();
                none.insert(buffer)
            }
        };
        let count = answer.read(filling.room(), self.patience.stall).await?;
        if count == 0 {
            return Ok(0);
        }
        filling.add(count);
        let is_full = filling.is_full();
        self.offset += count as u64;
        self.meter.set_done(self.offset);
        (self.newest, self.repeats) = (Instant::now(), 0);
        if is_full {
            self.pass_on().await.map_err(Failure::Fatal)?;
        }
        Ok(count)
    }

    /// Give away what there is of a piece.
    async fn pass_on(&mut self) -> Result<(), Error> {
        let Some(filling) = self.filling.take_if(|it| !it.bytes().is_empty()) else {
            return Ok(());
        };
        let piece = filling.done();
        if let Some(summing) = &self.summing {
            summing.add(piece.clone()).await?;
        }
        self.sink.data(piece).await.map_err(|_| Error::Stopped)
    }

    fn changed(&self) -> Error {
        Error::Changed { url: self.url.to_string() }
    }
}

/// The bytes are not the expected ones.
pub(super) fn mismatch(url: &Url, actual: &Checksum, expected: &Checksum) -> Error {
    Error::Digest {
        algorithm: expected.algorithm().name(),
        actual: actual.to_string(),
        expected: expected.to_string(),
        url: url.to_string(),
    }
}

/// Whether a cut of the body can be told from its end (RFC 9112 section 6.3).
fn bounded(headers: &HeaderMap) -> bool {
    let coding = headers.get(header::TRANSFER_ENCODING);
    headers.contains_key(header::CONTENT_LENGTH)
        || coding.is_some_and(|coding| coding.as_bytes().ends_with(b"chunked"))
}

/// The image's length when the server says that nothing is left of it: only the end of the
/// answer before was lost (RFC 9110 section 15.5.17).
fn whole_length(response: &Response<()>) -> Option<u64> {
    if response.status() != StatusCode::RANGE_NOT_SATISFIABLE {
        return None;
    }
    let range = response.headers().get(header::CONTENT_RANGE)?.to_str().ok()?;
    range.strip_prefix("bytes */")?.parse().ok()
}
