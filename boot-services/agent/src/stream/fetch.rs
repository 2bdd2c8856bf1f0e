//! The download: every byte once and in order, whatever the connection does.
//!
//! After a cut the rest is asked for with Range and If-Range (RFC 9110 sections 13.1.5 and 14.2).
//! A server that sends everything again is read again, and what was already used is compared by
//! its hash, so that two different images are never spliced.

use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderValue};
use http::{Response, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use sha2::{Digest as _, Sha256};
use stdx::Backoff;

use super::Url;
use super::checksum::{Algorithm, Checksum, Hasher};
use super::http1::{self, Failure};
use super::piece::Sink;
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
    pub(super) sha256: [u8; 32],
    pub(super) validator: Option<Validator>,
    /// Computed as the wanted one; without one, SHA-256.
    pub(super) sum: Checksum,
}

/// Fetch all of it into `sink`; its checksum is right then, but what was passed on before is gone.
pub(super) async fn run(wanted: &Wanted<'_>, meter: &Meter, sink: Sink) -> Result<Fetched, Error> {
    let other = wanted.checksum.map(Checksum::algorithm).filter(|it| *it != Algorithm::Sha256);
    let mut download = Download {
        url: wanted.url,
        patience: wanted.patience,
        checksum: wanted.checksum,
        strict: wanted.strict,
        meter,
        sink,
        hash: Sha256::new(),
        other: other.map(Hasher::new),
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
    hash: Sha256,
    /// When the checksum is another.
    other: Option<Hasher>,
    /// Bytes passed on so far.
    offset: u64,
    total: Option<u64>,
    validator: Option<Validator>,
    /// When the last new byte came.
    newest: Instant,
    repeats: u32,
}

/// Bytes that come again, compared by their hash.
struct Repeat {
    left: u64,
    hash: Sha256,
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

    async fn finish(self) -> Result<Fetched, Error> {
        let actual = self.other.unwrap_or(Hasher::Sha256(self.hash.clone())).finish();
        if let Some(expected) = self.checksum.filter(|it| self.strict && **it != actual) {
            return Err(mismatch(self.url, &actual, expected));
        }
        self.sink.end().await.map_err(|_| Error::Stopped)?;
        let sha256 = self.hash.finalize().into();
        Ok(Fetched { length: self.offset, sha256, validator: self.validator, sum: actual })
    }

    /// One connection; `Ok` when the image is complete.
    async fn attempt(&mut self) -> Result<(), Failure> {
        let mut answer = http1::get(self.url, &self.range()).await?;
        if self.offset > 0 && whole_length(&answer.response) == Some(self.offset) {
            return Ok(());
        }
        let mut repeat = match self.begin(&answer.response) {
            Err(Failure::Transient(reason)) => {
                let said = http1::sentence(&mut answer.response).await;
                return Err(Failure::Transient(format!("{reason}{said}")));
            }
            Err(Failure::Fatal(Error::Status { url, status })) => {
                let said = http1::sentence(&mut answer.response).await;
                return Err(Failure::Fatal(Error::Status { url, status: status + &said }));
            }
            begun => begun?,
        };
        let length = self.total;
        loop {
            let frame = tokio::time::timeout(self.patience.stall, answer.response.frame()).await;
            let bytes = match frame {
                Err(_) => {
                    let seconds = self.patience.stall.as_secs();
                    return Err(Failure::Transient(format!("no byte for {seconds} s")));
                }
                Ok(None) => break,
                Ok(Some(Err(error))) => return Err(Failure::Transient(stdx::chain(&error))),
                Ok(Some(Ok(frame))) => frame.into_data().unwrap_or_default(),
            };
            self.take(bytes, &mut repeat).await?;
        }
        match length {
            Some(total) if self.offset != total => Err(Failure::Transient(format!(
                "the connection ended at {} of {total} bytes",
                self.offset
            ))),
            None if repeat.left > 0 => Err(Failure::Fatal(self.changed())),
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
    fn begin(&mut self, response: &Response<Incoming>) -> Result<Repeat, Failure> {
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
        self.recognise(response.headers(), total)?;
        if status == StatusCode::PARTIAL_CONTENT && start != self.offset {
            let reason = format!("asked for byte {}, the answer begins at {start}", self.offset);
            return Err(Failure::Transient(reason));
        }
        if start == 0 && self.offset > 0 {
            self.repeats += 1;
        }
        Ok(Repeat { left: self.offset - start.min(self.offset), hash: Sha256::new() })
    }

    /// Make sure that this is the image the download began with.
    fn recognise(&mut self, headers: &HeaderMap, total: Option<u64>) -> Result<(), Failure> {
        let validator = Validator::of(headers);
        if self.offset == 0 {
            self.validator = validator;
            self.total = total;
            self.meter.set_total(total.unwrap_or(0));
            return Ok(());
        }
        let other = |ours: bool| if ours { Ok(()) } else { Err(Failure::Fatal(self.changed())) };
        other(self.total.is_none() || total.is_none() || self.total == total)?;
        other(self.validator.is_none() || validator.is_none() || self.validator == validator)
    }

    /// Pass on what is new in `bytes`.
    async fn take(&mut self, mut bytes: Bytes, repeat: &mut Repeat) -> Result<(), Failure> {
        if repeat.left > 0 {
            let count = repeat.left.min(bytes.len() as u64);
            let again = bytes.split_to(usize::try_from(count).unwrap_or(bytes.len()));
            repeat.hash.update(&again);
            repeat.left -= count;
            if repeat.left == 0 && repeat.hash.clone().finalize() != self.hash.clone().finalize() {
                return Err(Failure::Fatal(self.changed()));
            }
        }
        if bytes.is_empty() {
            return Ok(());
        }
        self.repeats = 0;
        self.hash.update(&bytes);
        if let Some(other) = &mut self.other {
            other.update(&bytes);
        }
        self.offset += bytes.len() as u64;
        self.meter.set_done(self.offset);
        let sent = self.sink.data(bytes).await;
        // After the send: a slow disk is no fault of the server's.
        self.newest = Instant::now();
        sent.map_err(|_| Failure::Fatal(Error::Stopped))
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
fn whole_length(response: &Response<Incoming>) -> Option<u64> {
    if response.status() != StatusCode::RANGE_NOT_SATISFIABLE {
        return None;
    }
    let range = response.headers().get(header::CONTENT_RANGE)?.to_str().ok()?;
    range.strip_prefix("bytes */")?.parse().ok()
}
