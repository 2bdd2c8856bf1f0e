//! Downloads every byte once and in order, even if connections break. The bytes go from the socket
//! directly into the buffers that are written to the disk.
//!
//! After an interruption, the rest is requested with Range and If-Range (RFC 9110 sections 13.1.5
//! and 14.2). If the server sends everything again, the known part is read again and dropped. A
//! strong validator (section 8.8.1) proves that the image has not changed. Without one, the
//! checksum of the bytes already used is compared, so that two different images are never joined.
//! Therefore a checksum is computed if one is expected or if the validator is not strong.

use std::time::Instant;

use http::header::{self, HeaderMap, HeaderValue};
use http::{Response, StatusCode};
use stdx::Backoff;

use super::Url;
use super::checksum::summing::Summing;
use super::checksum::{Algorithm, Checksum, Hasher};
use super::http1::holes::{self, Holes};
use super::http1::validator::{self, Validator, bounded, whole_length};
use super::http1::{self, Answer, Failure};
use super::piece::{Filling, PIECE, Piece, Sink};
use super::timeouts::Timeouts;
use crate::{Error, Meter};

/// Maximum number of consecutive responses from the start without a new byte.
const REPEATS: u32 = 10;
/// Size of the buffer for repeated bytes, in bytes.
const AGAIN: usize = 64 << 10;

/// URL, timeouts and expected checksum of a download.
pub(super) struct FetchRequest<'a> {
    pub(super) url: &'a Url,
    pub(super) timeouts: Timeouts,
    /// Expected checksum; `None` if unknown.
    pub(super) checksum: Option<&'a Checksum>,
    /// True if a wrong checksum is an error; false if the caller compares.
    pub(super) strict: bool,
}

/// Length, version and checksum of a complete download.
pub(super) struct FetchSummary {
    pub(super) length: u64,
    pub(super) validator: Option<Validator>,
    /// Computed checksum, with the expected checksum's algorithm. Without an expected checksum:
    /// SHA-256 if the validator is not strong, else `None`.
    pub(super) sum: Option<Checksum>,
}

/// Downloads the URL into `sink`, and verifies the checksum at the end, after the bytes were passed
/// on.
pub(super) async fn run(
    wanted: &FetchRequest<'_>,
    meter: &Meter,
    sink: Sink,
) -> Result<FetchSummary, Error> {
    let mut download = Download {
        url: wanted.url,
        timeouts: wanted.timeouts,
        checksum: wanted.checksum,
        strict: wanted.strict,
        meter,
        sink,
        filling: None,
        summing: None,
        offset: 0,
        total: None,
        validator: None,
        holes: Holes::default(),
        newest: Instant::now(),
        repeats: 0,
    };
    let mut backoff = Backoff::new(wanted.timeouts.first_wait, wanted.timeouts.longest_wait);
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
        download.check_silence(&reason)?;
        let (url, at) = (&wanted.url, stdx::bytes(download.offset));
        tracing::warn!(%url, at, reason, "download interrupted, trying again");
        meter.wait(format!("{reason}; tried again ({url})"));
        tokio::time::sleep(backoff.next_wait()).await;
    }
}

struct Download<'a> {
    url: &'a Url,
    timeouts: Timeouts,
    /// Expected checksum, which detects a mix of two images at the end. Without a checksum, the
    /// validator must prevent the mix.
    checksum: Option<&'a Checksum>,
    strict: bool,
    meter: &'a Meter,
    sink: Sink,
    /// Piece that is being filled and not passed on yet.
    filling: Option<Filling>,
    /// Running checksum of all pieces that were passed on.
    summing: Option<Summing>,
    /// Number of received bytes.
    offset: u64,
    total: Option<u64>,
    validator: Option<Validator>,
    /// Ranges of zeros that are not downloaded.
    holes: Holes,
    /// Time when the last new byte arrived.
    newest: Instant,
    repeats: u32,
}

/// Bytes at the beginning of a response that were received before.
struct Repeat {
    left: u64,
    /// Hash state to compare the repeated bytes; `None` if a strong validator proves them equal.
    sum: Option<Hasher>,
}

impl Download<'_> {
    fn check_silence(&self, reason: &str) -> Result<(), Error> {
        let waited = self.newest.elapsed();
        if waited < self.timeouts.silence && self.repeats <= REPEATS {
            return Ok(());
        }
        Err(Error::GaveUp {
            url: self.url.to_string(),
            offset: self.offset,
            waited,
            reason: reason.to_owned(),
        })
    }

    async fn finish(mut self) -> Result<FetchSummary, Error> {
        self.pass_on().await?;
        let sum = match self.summing.take() {
            Some(summing) => Some(summing.finish().await?),
            None => None,
        };
        let wrong = |expected: &&Checksum| self.strict && sum.as_ref() != Some(*expected);
        if let Some(expected) = self.checksum.filter(wrong) {
            let actual = sum.as_ref().ok_or(Error::Stopped)?;
            return Err(expected.missed(self.url, actual));
        }
        self.sink.end().await.map_err(|_| Error::Stopped)?;
        Ok(FetchSummary { length: self.offset, validator: self.validator, sum })
    }

    /// Downloads the rest, with one connection per range between holes. Returns `Ok` at the end.
    async fn attempt(&mut self) -> Result<(), Failure> {
        loop {
            self.connect().await?;
            let skipped = self.skip_hole().await.map_err(Failure::Fatal)?;
            match self.total {
                Some(total) if self.offset == total => return Ok(()),
                None => return Ok(()),
                Some(_) if skipped => {}
                Some(total) => {
                    let offset = self.offset;
                    let reason = format!("the connection ended at {offset} of {total} bytes");
                    return Err(Failure::Transient(reason));
                }
            }
        }
    }

    /// Sends a request, and reads its response up to the end or to a hole.
    async fn connect(&mut self) -> Result<(), Failure> {
        let mut answer = http1::get(self.url, &self.range()).await?;
        if self.offset > 0 && whole_length(&answer.head) == Some(self.offset) {
            return Ok(());
        }
        let repeat = match self.begin(&answer.head) {
            Err(Failure::Transient(reason)) => {
                let sentence = answer.sentence().await;
                return Err(Failure::Transient(format!("{reason}{sentence}")));
            }
            Err(Failure::Fatal(Error::Status { url, status })) => {
                let sentence = answer.sentence().await;
                return Err(Failure::Fatal(Error::Status { url, status: status + &sentence }));
            }
            begun => begun?,
        };
        self.meter.wait("");
        self.read_again(&mut answer, repeat).await?;
        while self.holes.next() != Some(self.offset) && self.read(&mut answer).await? > 0 {}
        Ok(())
    }

    /// Passes on the zeros of a hole at the current offset. Returns false if there is no hole.
    async fn skip_hole(&mut self) -> Result<bool, Error> {
        let Some(end) = self.holes.reach(self.offset) else { return Ok(false) };
        while self.offset < end {
            let left = usize::try_from(end - self.offset).unwrap_or(PIECE);
            let count = if self.filling.is_none() && left >= PIECE {
                let zeros = self.sink.zeros().await;
                self.give(zeros).await?;
                PIECE
            } else {
                let filling = self.filling().await;
                let count = filling.room().len().min(left);
                filling.add_zeros(count);
                count
            };
            self.came(count).await?;
        }
        Ok(true)
    }

    /// Returns the request fields: for the rest, Range and If-Range; at the start, for holes.
    fn range(&self) -> HeaderMap {
        let mut fields = HeaderMap::new();
        if self.offset == 0 {
            fields.insert(holes::FIELD, holes::ASK);
            return fields;
        }
        if self.validator.is_none() && self.checksum.is_none() {
            return fields;
        }
        let last = self.holes.next().map(|hole| (hole - 1).to_string()).unwrap_or_default();
        if let Ok(range) = HeaderValue::from_str(&format!("bytes={}-{last}", self.offset)) {
            fields.insert(header::RANGE, range);
        }
        if let Some(Validator::Strong(tag)) = &self.validator {
            fields.insert(header::IF_RANGE, tag.clone());
        }
        fields
    }

    /// Checks the response head. Returns the part of the body that was received before.
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
            .ok_or_else(|| Failure::Transient("the response's Content-Range is invalid".into()))?;
        let vouched = self.recognise(response.headers(), total)?;
        if status == StatusCode::PARTIAL_CONTENT && start != self.offset {
            let reason = format!("requested byte {}, the response begins at {start}", self.offset);
            return Err(Failure::Transient(reason));
        }
        if start == 0 && self.offset > 0 {
            self.repeats += 1;
            // Requests around the holes would repeat the whole body each time.
            self.holes = Holes::default();
        }
        let left = self.offset - start.min(self.offset);
        let sum = self.summing.as_ref().map(|summing| Hasher::new(summing.algorithm()));
        if left > 0 && sum.is_none() && !vouched {
            return Err(Failure::Fatal(self.changed()));
        }
        Ok(Repeat { left, sum })
    }

    /// Checks that the response has the same version of the image as the first response. Returns
    /// true if a strong validator proves the same version.
    fn recognise(&mut self, headers: &HeaderMap, total: Option<u64>) -> Result<bool, Failure> {
        let validator = Validator::of(headers);
        let strong = matches!(validator, Some(Validator::Strong(_)));
        if self.offset == 0 {
            self.validator = validator;
            self.total = total;
            // Holes of this version only. The requests for the other parts need its strong
            // validator.
            self.holes = if strong { Holes::of(headers, total) } else { Holes::default() };
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

    /// Reads the repeated bytes, and compares their checksum with the received bytes.
    async fn read_again(&mut self, answer: &mut Answer, again: Repeat) -> Result<(), Failure> {
        let Repeat { mut left, mut sum } = again;
        if left == 0 {
            return Ok(());
        }
        let mut buffer = vec![0; AGAIN];
        while left > 0 {
            let most = usize::try_from(left).unwrap_or(AGAIN).min(AGAIN);
            let count = answer.read(&mut buffer[..most], self.timeouts.stall).await?;
            if count == 0 {
                // Without a stated length, the response may be another, complete image.
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

    /// Reads available new bytes into the current piece. Returns their number; 0 at the end.
    async fn read(&mut self, answer: &mut Answer) -> Result<usize, Failure> {
        if self.sink.is_closed() {
            return Err(Failure::Fatal(Error::Stopped));
        }
        let (most, stall) = (self.holes.before(self.offset, PIECE), self.timeouts.stall);
        let filling = self.filling().await;
        let most = filling.room().len().min(most);
        let count = answer.read(&mut filling.room()[..most], stall).await?;
        if count > 0 {
            filling.add(count);
            self.came(count).await.map_err(Failure::Fatal)?;
        }
        Ok(count)
    }

    /// Returns the current piece; waits for a free buffer if there is none.
    async fn filling(&mut self) -> &mut Filling {
        match &mut self.filling {
            Some(filling) => filling,
            none => {
                let buffer = self.sink.buffer().await;
                // The time that a slow disk takes does not count against the server.
                self.newest = Instant::now();
                none.insert(buffer)
            }
        }
    }

    /// Adds `count` new bytes to the offset and the meter, and passes on a full piece.
    async fn came(&mut self, count: usize) -> Result<(), Error> {
        self.offset += count as u64;
        self.meter.set_done(self.offset);
        (self.newest, self.repeats) = (Instant::now(), 0);
        if self.filling.as_ref().is_some_and(Filling::is_full) {
            self.pass_on().await?;
        }
        Ok(())
    }

    /// Passes the current piece to checksum and sink, if it has bytes.
    async fn pass_on(&mut self) -> Result<(), Error> {
        let Some(filling) = self.filling.take_if(|it| !it.bytes().is_empty()) else {
            return Ok(());
        };
        self.give(filling.done()).await
    }

    async fn give(&self, piece: Piece) -> Result<(), Error> {
        if let Some(summing) = &self.summing {
            summing.add(piece.clone()).await?;
        }
        self.sink.data(piece).await.map_err(|_| Error::Stopped)
    }

    fn changed(&self) -> Error {
        Error::Changed { url: self.url.to_string() }
    }
}
