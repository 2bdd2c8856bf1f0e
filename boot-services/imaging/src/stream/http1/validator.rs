//! Evaluates a response head: version of the image, range, and whether a retry may succeed.

use http::header::{self, HeaderMap, HeaderValue};
use http::{Response, StatusCode};

/// Validator: version of the image on the server (RFC 9110 section 8.8).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::stream) enum Validator {
    /// Strong entity tag, valid for If-Range.
    Strong(HeaderValue),
    /// Weak entity tag or Last-Modified date, compared but not valid for If-Range.
    Weak(HeaderValue),
}

impl Validator {
    pub(in crate::stream) fn of(headers: &HeaderMap) -> Option<Self> {
        match headers.get(header::ETAG) {
            Some(tag) if tag.as_bytes().starts_with(b"W/") => Some(Self::Weak(tag.clone())),
            Some(tag) => Some(Self::Strong(tag.clone())),
            None => headers.get(header::LAST_MODIFIED).cloned().map(Self::Weak),
        }
    }
}

/// Returns true for a temporary error status: server error, 408, 425 or 429.
pub(in crate::stream) fn may_pass(status: StatusCode) -> bool {
    status.is_server_error()
        || matches!(
            status,
            StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_EARLY | StatusCode::TOO_MANY_REQUESTS
        )
}

/// Returns the offset of the body in the image and, if known, the length of the image. Returns
/// `None` for a partial response without a valid Content-Range (RFC 9110 section 14.4).
pub(in crate::stream) fn extent(response: &Response<()>) -> Option<(u64, Option<u64>)> {
    let headers = response.headers();
    if response.status() != StatusCode::PARTIAL_CONTENT {
        let length = headers.get(header::CONTENT_LENGTH);
        return Some((0, length.and_then(|value| value.to_str().ok()?.parse().ok())));
    }
    let range = headers.get(header::CONTENT_RANGE)?.to_str().ok()?;
    let (span, total) = range.strip_prefix("bytes ")?.split_once('/')?;
    let start = span.split_once('-')?.0.parse().ok()?;
    Some((start, total.parse().ok()))
}

/// Returns true if the framing makes a truncated body detectable (RFC 9112 section 6.3).
pub(in crate::stream) fn bounded(headers: &HeaderMap) -> bool {
    let coding = headers.get(header::TRANSFER_ENCODING);
    headers.contains_key(header::CONTENT_LENGTH)
        || coding.is_some_and(|coding| coding.as_bytes().ends_with(b"chunked"))
}

/// Returns the image's length from a 416 response (RFC 9110 section 15.5.17). A length equal to the
/// requested offset means that the image is already complete.
pub(in crate::stream) fn whole_length(response: &Response<()>) -> Option<u64> {
    if response.status() != StatusCode::RANGE_NOT_SATISFIABLE {
        return None;
    }
    let range = response.headers().get(header::CONTENT_RANGE)?.to_str().ok()?;
    range.strip_prefix("bytes */")?.parse().ok()
}
