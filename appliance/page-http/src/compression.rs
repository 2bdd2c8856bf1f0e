//! Compression of responses with gzip (RFC 1952), where the client accepts it.
//!
//! The size of a compressed page that repeats text of its request reveals secrets in the page to a
//! site that makes the browser request it many times (BREACH). So a request that another origin
//! caused gets its page as it is, and [`form_token`](crate::form_token) masks the CSRF tokens for
//! browsers that do not report the origin. Files with a secret, such as a kubeconfig or a backup,
//! are never compressed.

use std::io::Write as _;

use axum::body::{Body, Bytes, HttpBody as _};
use axum::extract::Request;
use axum::http::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, ETAG, VARY,
};
use axum::http::{HeaderMap, HeaderValue, Response};
use axum::middleware::Next;
use flate2::Compression;
use flate2::write::GzEncoder;

/// Minimum size in bytes of a compressed body: a smaller one fits into one TCP segment anyway.
pub const COMPRESSED_BYTES_MIN: u64 = 1024;
/// Maximum size in bytes of a body that is compressed in memory; a larger one is sent as it is. The
/// largest pages, with all log lines of a machine, stay far below.
const COMPRESSED_BYTES_MAX: u64 = 4 << 20;
/// Media types of texts that are compressed. Images and downloads are not among them.
const TEXTS: [&str; 5] =
    ["text/html", "text/css", "text/javascript", "application/json", "image/svg+xml"];

/// Compresses the body of a response of one of [`TEXTS`] for a client that accepts gzip. A body
/// without a known size, such as a live stream, is left as it is. The response to HEAD still has
/// its body here, so it gets the headers of GET.
pub async fn compress(request: Request, next: Next) -> Response<Body> {
    let accepted = takes_gzip(request.headers()) && !is_of_other_origin(request.headers());
    let mut answer = next.run(request).await;
    if !is_text(answer.headers()) || answer.headers().contains_key(CONTENT_ENCODING) {
        return answer;
    }
    let size = answer.body().size_hint().exact();
    let fits = size.is_some_and(|it| (COMPRESSED_BYTES_MIN..=COMPRESSED_BYTES_MAX).contains(&it));
    if !fits {
        return answer;
    }
    answer.headers_mut().append(VARY, HeaderValue::from_static("accept-encoding"));
    if !accepted {
        return answer;
    }
    let (mut head, body) = answer.into_parts();
    let Ok(plain) = axum::body::to_bytes(body, COMPRESSED_BYTES_MAX as usize).await else {
        return Response::from_parts(head, Body::empty());
    };
    let input = plain.clone();
    // A large page takes a millisecond, so a blocking thread compresses it.
    match tokio::task::spawn_blocking(move || packed(&input)).await {
        Ok(Some(body)) => {
            mark(&mut head.headers);
            head.headers.remove(CONTENT_LENGTH);
            Response::from_parts(head, body.into())
        }
        _ => Response::from_parts(head, plain.into()),
    }
}

/// Returns `plain` compressed with gzip. Writing to memory does not fail; `None` if it did.
pub fn packed(plain: &[u8]) -> Option<Bytes> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(plain).ok()?;
    encoder.finish().ok().map(Bytes::from)
}

/// Marks a response as compressed with gzip. Its entity tag becomes another than that of the plain
/// response, because a strong tag stands for the same bytes (RFC 9110 section 8.8.3.3).
fn mark(headers: &mut HeaderMap) {
    headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    headers.remove(ETAG);
}

/// Returns true if `Accept-Encoding` names gzip, or all encodings, with a quality other than zero
/// (RFC 9110 section 12.5.3).
pub fn takes_gzip(headers: &HeaderMap) -> bool {
    let values = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|it| it.to_str().ok());
    let mut any = false;
    for item in values.flat_map(|value| value.split(',')) {
        let mut parts = item.split(';').map(str::trim);
        let coding = parts.next().unwrap_or_default();
        let quality = parts.next().and_then(|it| it.strip_prefix("q="));
        let taken = quality.is_none_or(|it| it.parse::<f32>().is_ok_and(|it| it > 0.0));
        if coding.eq_ignore_ascii_case("gzip") || coding.eq_ignore_ascii_case("x-gzip") {
            return taken;
        }
        any |= coding == "*" && taken;
    }
    any
}

/// Returns true if the browser reports that a page of another origin caused the request, such as a
/// program at another port of the box (Fetch Metadata, `Sec-Fetch-Site`).
fn is_of_other_origin(headers: &HeaderMap) -> bool {
    let cause = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
    cause.is_some_and(|it| it != b"same-origin" && it != b"none")
}

fn is_text(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|it| it.to_str().ok()).unwrap_or_default();
    TEXTS.contains(&kind.split(';').next().unwrap_or_default().trim())
}

#[cfg(test)]
mod tests;
