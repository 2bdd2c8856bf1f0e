//! The last touch on every answer: no body for HEAD, fewer bytes where that is asked for.

use std::io::Write as _;

use axum::body::Body;
use axum::body::HttpBody as _;
use axum::response::Response;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, VARY};
use http::{HeaderMap, HeaderValue, Method};
use http_body_util::BodyExt as _;

use super::accept;

/// Answers below this size are sent as they are (upstream's threshold).
pub const MIN_COMPRESSED: u64 = 128 * 1024;
/// What of a request decides about the form of its answer.
pub struct Wishes {
    gzip: bool,
    head: bool,
}

impl Wishes {
    /// Reads them.
    pub fn of(method: &Method, headers: &HeaderMap) -> Self {
        Self { gzip: accept::takes_gzip(headers), head: *method == Method::HEAD }
    }

    /// The answer as it goes out.
    pub async fn apply(self, mut response: Response) -> Response {
        let size = response.body().size_hint().exact();
        if self.head {
            if let Some(size) = size {
                response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(size));
            }
            return response.map(|_| Body::empty());
        }
        let large = size.is_some_and(|size| size >= MIN_COMPRESSED);
        if !(self.gzip && large) || response.headers().contains_key(CONTENT_ENCODING) {
            return response;
        }
        let (mut head, body) = response.into_parts();
        let Ok(body) = body.collect().await else {
            return Response::from_parts(head, Body::empty());
        };
        let body = body.to_bytes();
        let plain = body.clone();
        // Milliseconds of work: not on a thread that serves sockets.
        let packed = tokio::task::spawn_blocking(move || pack(&plain)).await;
        let Ok(Ok(packed)) = packed else { return Response::from_parts(head, Body::from(body)) };
        head.headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        head.headers.append(VARY, HeaderValue::from_static("Accept-Encoding"));
        Response::from_parts(head, Body::from(packed))
    }
}

fn pack(plain: &Bytes) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(plain.len() / 4), Compression::fast());
    encoder.write_all(plain)?;
    encoder.finish()
}
