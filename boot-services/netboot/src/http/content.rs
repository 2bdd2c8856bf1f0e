//! Serves a file over HTTP: conditions, ranges, the record of the fetch, and for the router a body
//! that holds one chunk in memory.

use std::io::SeekFrom;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use futures_util::Stream;
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncSeekExt, Take};
use tokio_util::io::ReaderStream;

use super::holes;
use crate::events::shortened;
use crate::files::OpenFile;
use crate::files::range::{self, Part};
use crate::{FetchEvent, Observer};

/// Bytes that are read from disk at a time. Each connection holds one such buffer.
const CHUNK: usize = 128 << 10;

/// Reports the end of a response to the observer when dropped, also after a failure.
pub(super) struct Record {
    observer: Arc<dyn Observer>,
    peer: IpAddr,
    path: String,
    started: Instant,
    pub(super) status: StatusCode,
    pub(super) bytes: u64,
}

impl Record {
    pub(super) fn new(observer: Arc<dyn Observer>, peer: IpAddr, path: &str) -> Self {
        let status = StatusCode::INTERNAL_SERVER_ERROR;
        Self { observer, peer, path: shortened(path), started: Instant::now(), status, bytes: 0 }
    }

    /// Returns a response whose body is one sentence that explains the error.
    pub(super) fn sentence(self, status: StatusCode, sentence: &str) -> Response {
        let mut response = self.empty(status);
        *response.body_mut() = Body::from(format!("{sentence}\n"));
        let plain = HeaderValue::from_static("text/plain; charset=utf-8");
        response.headers_mut().insert(header::CONTENT_TYPE, plain);
        response
    }

    /// Returns a response without a body.
    pub(super) fn empty(mut self, status: StatusCode) -> Response {
        self.status = status;
        let mut response = Response::new(Body::empty());
        *response.status_mut() = status;
        response
    }
}

impl<'a> Conditions<'a> {
    /// Returns the conditions of a request that the router handles.
    pub(super) fn read(request: &'a HeaderMap) -> Self {
        let text = |name: HeaderName| request.get(name).and_then(|value| value.to_str().ok());
        Self {
            range: text(header::RANGE),
            if_range: text(header::IF_RANGE),
            if_none_match: text(header::IF_NONE_MATCH),
        }
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let millis = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.observer.fetched(FetchEvent::Http {
            peer: self.peer,
            path: std::mem::take(&mut self.path),
            bytes: self.bytes,
            millis,
            status: self.status.as_u16(),
        });
    }
}

/// Conditional and range fields of a request, unparsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Conditions<'a> {
    /// `Range` (RFC 9110 section 14.2).
    pub range: Option<&'a str>,
    /// `If-Range` (RFC 9110 section 13.1.5).
    pub if_range: Option<&'a str>,
    /// `If-None-Match` (RFC 9110 section 13.1.2).
    pub if_none_match: Option<&'a str>,
}

/// Response to a request for a file, without the body.
pub(super) struct ResponseHead {
    pub(super) status: StatusCode,
    /// Offset in the file at which the body starts.
    pub(super) first: u64,
    /// Length of the body in bytes.
    pub(super) length: u64,
    pub(super) headers: Vec<(HeaderName, String)>,
}

impl ResponseHead {
    /// Returns a response head without a body, for a request that gets no file.
    pub(super) fn none(status: StatusCode) -> Self {
        let headers = vec![(header::CONTENT_LENGTH, "0".to_owned())];
        Self { status, first: 0, length: 0, headers }
    }

    /// Applies RFC 9110 sections 13 and 14 to a file of `size` bytes with this entity tag.
    pub(super) fn of(request: Conditions<'_>, size: u64, tag: &str) -> Self {
        if request.if_none_match.is_some_and(|known| matches(known, tag)) {
            let headers = vec![(header::ETAG, tag.to_owned())];
            return Self { status: StatusCode::NOT_MODIFIED, first: 0, length: 0, headers };
        }
        // A range of another version of the file is ignored: the whole file is sent.
        let current = request.if_range.is_none_or(|known| known.trim() == tag);
        let part = if current { range::part(request.range, size) } else { Part::Whole };
        let (first, length, status) = match part {
            Part::Whole => (0, size, StatusCode::OK),
            Part::Bytes(first, last) => (first, last - first + 1, StatusCode::PARTIAL_CONTENT),
            Part::Unsatisfiable => {
                let mut none = Self::none(StatusCode::RANGE_NOT_SATISFIABLE);
                none.headers.push((header::CONTENT_RANGE, format!("bytes */{size}")));
                return none;
            }
        };
        let mut headers = vec![
            (header::CONTENT_TYPE, "application/octet-stream".to_owned()),
            (header::ACCEPT_RANGES, "bytes".to_owned()),
            (header::ETAG, tag.to_owned()),
            (header::CONTENT_LENGTH, length.to_string()),
        ];
        if status == StatusCode::PARTIAL_CONTENT {
            let range = format!("bytes {first}-{}/{size}", first + length - 1);
            headers.push((header::CONTENT_RANGE, range));
        }
        Self { status, first, length, headers }
    }
}

impl ResponseHead {
    /// Adds the list of holes to the response if the whole file is sent.
    pub(super) fn with_holes(mut self, file: &std::fs::File, size: u64) -> Self {
        if self.status == StatusCode::OK {
            self.headers.extend(holes::of(file, size).map(|ranges| (holes::FIELD, ranges)));
        }
        self
    }

    /// Returns the response with this body.
    pub(super) fn respond(self, body: Body) -> Response {
        let mut response = Response::new(body);
        *response.status_mut() = self.status;
        for (name, value) in self.headers {
            // Every value consists of digits, names and quotes that this file wrote.
            if let Ok(value) = HeaderValue::from_str(&value) {
                response.headers_mut().insert(name, value);
            }
        }
        response
    }
}

/// Returns the response to a GET of an open file. A HEAD gets the same response; its body is
/// dropped unread.
pub(super) async fn answer(
    opened: OpenFile<File>,
    request: &HeaderMap,
    mut record: Record,
) -> Response {
    let OpenFile { mut file, size, tag } = opened;
    let head = ResponseHead::of(Conditions::read(request), size, &tag.to_string());
    if head.first > 0
        && let Err(error) = file.seek(SeekFrom::Start(head.first)).await
    {
        tracing::warn!(path = record.path, %error, "a file could not be read from an offset");
        return record.empty(StatusCode::INTERNAL_SERVER_ERROR);
    }
    file.set_max_buf_size(CHUNK);
    record.status = head.status;
    let body = if head.length == 0 {
        Body::empty()
    } else {
        let reader = ReaderStream::with_capacity(file.take(head.length), CHUNK);
        Body::from_stream(RecordedBody { reader, record })
    };
    head.respond(body)
}

/// Returns true if `known` has `tag` or is `*`, by weak comparison (RFC 9110 section 13.1.2).
fn matches(known: &str, tag: &str) -> bool {
    known.split(',').map(str::trim).any(|one| one == "*" || one.trim_start_matches("W/") == tag)
}

/// Body that counts the bytes it passes on.
struct RecordedBody {
    reader: ReaderStream<Take<File>>,
    record: Record,
}

impl Stream for RecordedBody {
    type Item = std::io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let chunk = ready!(Pin::new(&mut self.reader).poll_next(cx));
        if let Some(Ok(bytes)) = &chunk {
            self.record.bytes += bytes.len() as u64;
        }
        Poll::Ready(chunk)
    }
}
