//! Reads parts of a file on a server by offset. Sequential reads share one response; a read at
//! another offset sends a new request. All parts are from the same version of the file.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use http::header::{self, HeaderMap, HeaderValue};
use http::{Response, StatusCode};
use stdx::Backoff;
use tokio::runtime::Handle;

use super::Url;
use super::decode::qcow2::{Part, Storage};
use super::http1::validator::{self, Validator};
use super::http1::{self, Answer, Failure};
use super::timeouts::Timeouts;
use crate::{Error, Meter};

/// Maximum number of bytes to skip in a response; for more, a new request is faster.
const SKIP: u64 = 1 << 20;
/// Size of the buffer for skipped bytes, in bytes.
const PASSED_OVER: usize = 64 << 10;

/// File on a server that is read by offset.
pub(super) struct Ranges {
    url: Url,
    timeouts: Timeouts,
    meter: Arc<Meter>,
    runtime: Handle,
    length: u64,
    validator: Option<Validator>,
    /// Response that sequential reads continue.
    lane: Option<Lane>,
}

/// Response with an unread body, and its position.
struct Lane {
    answer: Answer,
    /// Offset in the file of the next byte.
    at: u64,
}

impl Ranges {
    /// Requests the file's length and version. Blocks, like all reads: must not be called on a
    /// thread of the async runtime.
    pub(super) fn open(
        url: Url,
        timeouts: Timeouts,
        meter: Arc<Meter>,
        runtime: Handle,
    ) -> Result<Self, Error> {
        let mut ranges =
            Self { url, timeouts, meter, runtime, length: 0, validator: None, lane: None };
        let (runtime, mut first) = (ranges.runtime.clone(), [0]);
        runtime.block_on(ranges.read(0, &mut first, Part::Data))?;
        if ranges.validator.is_none() {
            let reason = "it is read in parts, but the server sends no ETag or Last-Modified to \
                          detect a change of the file";
            return Err(ranges.refused(reason));
        }
        Ok(ranges)
    }

    pub(super) fn validator(&self) -> Option<&Validator> {
        self.validator.as_ref()
    }

    fn refused(&self, reason: &str) -> Error {
        Error::Url { url: self.url.to_string(), reason: reason.to_owned() }
    }

    fn changed(&self) -> Failure {
        Failure::Fatal(Error::Changed { url: self.url.to_string() })
    }

    async fn read(&mut self, offset: u64, out: &mut [u8], part: Part) -> Result<(), Error> {
        let mut backoff = Backoff::new(self.timeouts.first_wait, self.timeouts.longest_wait);
        let (mut filled, mut newest) = (0, Instant::now());
        while filled < out.len() {
            if self.meter.is_stopped() {
                return Err(Error::Stopped);
            }
            let before = filled;
            let reason = match self.attempt(offset, out, &mut filled, part).await {
                Ok(()) => break,
                Err(Failure::Fatal(error)) => return Err(error),
                Err(Failure::Transient(reason)) => reason,
            };
            if filled > before {
                newest = Instant::now();
                backoff.reset();
            }
            let (url, waited) = (self.url.to_string(), newest.elapsed());
            if waited >= self.timeouts.silence {
                return Err(Error::GaveUp { url, offset, waited, reason });
            }
            tracing::warn!(url, offset, reason, "download interrupted, trying again");
            tokio::time::sleep(backoff.next_wait()).await;
        }
        Ok(())
    }

    async fn attempt(
        &mut self,
        offset: u64,
        out: &mut [u8],
        filled: &mut usize,
        part: Part,
    ) -> Result<(), Failure> {
        let at = offset + *filled as u64;
        let end = offset + out.len() as u64;
        if part == Part::Table {
            let mut lane = self.ask(at, Some(end)).await?;
            return self.drain(&mut lane, at, out, filled).await;
        }
        let near = |lane: &Lane| lane.at <= at && at - lane.at <= SKIP;
        let mut lane = match self.lane.take().filter(near) {
            Some(lane) => lane,
            None => self.ask(at, None).await?,
        };
        self.drain(&mut lane, at, out, filled).await?;
        self.lane = Some(lane);
        Ok(())
    }

    /// Fills the rest of `out` from offset `at`. Skips earlier bytes of the response.
    async fn drain(
        &self,
        lane: &mut Lane,
        at: u64,
        out: &mut [u8],
        filled: &mut usize,
    ) -> Result<(), Failure> {
        let mut passed_over = vec![0; if lane.at < at { PASSED_OVER } else { 0 }];
        while *filled < out.len() {
            let room = if lane.at < at {
                let left = usize::try_from(at - lane.at).unwrap_or(PASSED_OVER);
                &mut passed_over[..left.min(PASSED_OVER)]
            } else {
                &mut out[*filled..]
            };
            let count = lane.answer.read(room, self.timeouts.stall).await?;
            if count == 0 {
                return Err(Failure::Transient("the connection ended early".to_owned()));
            }
            if lane.at >= at {
                *filled += count;
            }
            lane.at += count as u64;
        }
        Ok(())
    }

    async fn ask(&mut self, at: u64, end: Option<u64>) -> Result<Lane, Failure> {
        let last = end.map(|end| (end - 1).to_string()).unwrap_or_default();
        let mut fields = HeaderMap::new();
        if let Ok(range) = HeaderValue::from_str(&format!("bytes={at}-{last}")) {
            fields.insert(header::RANGE, range);
        }
        if let Some(Validator::Strong(tag)) = &self.validator {
            fields.insert(header::IF_RANGE, tag.clone());
        }
        let mut answer = http1::get(&self.url, &fields).await?;
        match self.judge(&answer.head, at) {
            Err(Failure::Transient(reason)) => {
                let sentence = answer.sentence().await;
                return Err(Failure::Transient(reason + &sentence));
            }
            Err(Failure::Fatal(Error::Status { url, status })) => {
                let sentence = answer.sentence().await;
                return Err(Failure::Fatal(Error::Status { url, status: status + &sentence }));
            }
            judged => judged?,
        }
        Ok(Lane { answer, at })
    }

    fn judge(&mut self, response: &Response<()>, at: u64) -> Result<(), Failure> {
        let (status, seen) = (response.status(), Validator::of(response.headers()));
        match status {
            StatusCode::PARTIAL_CONTENT => {}
            // A whole file in place of a part. With If-Range, this means another version.
            StatusCode::OK if self.length > 0 && seen != self.validator => {
                return Err(self.changed());
            }
            StatusCode::OK => {
                let reason = "a qcow2 image is read in parts, but the server does not support \
                              Range requests; use another server or convert the image to raw";
                return Err(Failure::Fatal(self.refused(reason)));
            }
            StatusCode::RANGE_NOT_SATISFIABLE if self.length > 0 => return Err(self.changed()),
            _ if validator::may_pass(status) => {
                return Err(Failure::Transient(format!("the server answered {status}")));
            }
            _ => {
                let (url, status) = (self.url.to_string(), status.to_string());
                return Err(Failure::Fatal(Error::Status { url, status }));
            }
        }
        let Some((start, Some(total))) = validator::extent(response) else {
            let reason = "the response's Content-Range is invalid".to_owned();
            return Err(Failure::Transient(reason));
        };
        if start != at {
            let reason = format!("requested byte {at}, the response begins at {start}");
            return Err(Failure::Transient(reason));
        }
        if self.length == 0 {
            (self.length, self.validator) = (total, seen);
        } else if self.length != total || self.validator != seen {
            return Err(self.changed());
        }
        Ok(())
    }
}

impl Storage for Ranges {
    fn length(&self) -> u64 {
        self.length
    }

    /// Wraps an [`Error`] in an I/O error, which `write::undecoded` unwraps again.
    fn read_at(&mut self, offset: u64, out: &mut [u8], part: Part) -> io::Result<()> {
        let runtime = self.runtime.clone();
        runtime.block_on(self.read(offset, out, part)).map_err(io::Error::other)
    }
}
