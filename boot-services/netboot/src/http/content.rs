//! A file as an HTTP answer: conditions, ranges, and a body that holds one chunk in memory.

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

use super::range::{Part, part};
use crate::files::Opened;
use crate::seen::shortened;
use crate::{Fetched, Observer};

/// Bytes read from disk at a time, and so held per connection.
const CHUNK: usize = 128 << 10;

/// Tells the observer when an answer ends, however it ends.
pub(super) struct Record {
    observer: Arc<dyn Observer>,
    peer: IpAddr,
    path: String,
    started: Instant,
    status: StatusCode,
    bytes: u64,
}

impl Record {
    pub(super) fn new(observer: Arc<dyn Observer>, peer: IpAddr, path: &str) -> Self {
        let status = StatusCode::INTERNAL_SERVER_ERROR;
        Self { observer, peer, path: shortened(path), started: Instant::now(), status, bytes: 0 }
    }

    /// An answer without a body.
    pub(super) fn empty(mut self, status: StatusCode) -> Response {
        self.status = status;
        let mut response = Response::new(Body::empty());
        *response.status_mut() = status;
        response
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let millis = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.observer.fetched(Fetched::Http {
            peer: self.peer,
            path: std::mem::take(&mut self.path),
            bytes: self.bytes,
            millis,
            status: self.status.as_u16(),
        });
    }
}

/// The answer to a GET of an open file. A HEAD gets the same; the body is dropped unread.
pub(super) async fn answer(opened: Opened, asked: &HeaderMap, mut record: Record) -> Response {
    let Opened { mut file, size, tag } = opened;
    let tag = tag.to_string();
    let text = |name: HeaderName| asked.get(name).and_then(|value| value.to_str().ok());
    if text(header::IF_NONE_MATCH).is_some_and(|known| matches(known, &tag)) {
        return with(record.empty(StatusCode::NOT_MODIFIED), header::ETAG, &tag);
    }
    // A range of another version of the file is of no use: then all of it is sent.
    let current = text(header::IF_RANGE).is_none_or(|known| known.trim() == tag);
    let wanted = if current { part(text(header::RANGE), size) } else { Part::Whole };
    let (first, length, status) = match wanted {
        Part::Whole => (0, size, StatusCode::OK),
        Part::Bytes(first, last) => (first, last - first + 1, StatusCode::PARTIAL_CONTENT),
        Part::Unsatisfiable => {
            let response = record.empty(StatusCode::RANGE_NOT_SATISFIABLE);
            return with(response, header::CONTENT_RANGE, &format!("bytes */{size}"));
        }
    };
    if first > 0
        && let Err(error) = file.seek(SeekFrom::Start(first)).await
    {
        tracing::warn!(path = record.path, %error, "a file could not be read from an offset");
        return record.empty(StatusCode::INTERNAL_SERVER_ERROR);
    }
    file.set_max_buf_size(CHUNK);
    record.status = status;
    let reader = ReaderStream::with_capacity(file.take(length), CHUNK);
    let mut response = Response::new(Body::from_stream(Recorded { reader, record }));
    *response.status_mut() = status;
    let response = with(response, header::CONTENT_TYPE, "application/octet-stream");
    let response = with(response, header::ACCEPT_RANGES, "bytes");
    let response = with(response, header::ETAG, &tag);
    let response = with(response, header::CONTENT_LENGTH, &length.to_string());
    if status == StatusCode::PARTIAL_CONTENT {
        let range = format!("bytes {first}-{}/{size}", first + length - 1);
        with(response, header::CONTENT_RANGE, &range)
    } else {
        response
    }
}

/// RFC 9110 section 13.1.2, the weak comparison.
fn matches(known: &str, tag: &str) -> bool {
    known.split(',').map(str::trim).any(|one| one == "*" || one.trim_start_matches("W/") == tag)
}

fn with(mut response: Response, name: HeaderName, value: &str) -> Response {
    // Every value here is made of digits, names and quotes by this file.
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
    response
}

/// A body that counts what it hands over.
struct Recorded {
    reader: ReaderStream<Take<File>>,
    record: Record,
}

impl Stream for Recorded {
    type Item = std::io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let chunk = ready!(Pin::new(&mut self.reader).poll_next(cx));
        if let Some(Ok(bytes)) = &chunk {
            self.record.bytes += bytes.len() as u64;
        }
        Poll::Ready(chunk)
    }
}
