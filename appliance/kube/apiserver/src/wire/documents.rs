//! Discovery and OpenAPI documents, which are the same for all clients until the served kinds
//! change. Clients check a cached copy by the ETag, a hash of the document.

use std::io::{Read as _, Write as _};

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY};
use http::{HeaderMap, HeaderValue, StatusCode};
use sha2::{Digest as _, Sha256};

use super::accept;

/// Minimum size in bytes of a compressed document; compression of smaller documents gains nothing.
const WORTH_COMPRESSING: usize = 1024;
/// Maximum size in bytes to which a document is decompressed, for a client without gzip.
const MAX_DOCUMENT: u64 = 64 << 20;

/// Bytes of a document with their ETag, compressed in memory if compression saves space.
#[derive(Debug, Clone)]
pub struct Document {
    tag: String,
    bytes: Bytes,
    compressed: bool,
}

impl Document {
    /// Makes a document with the content `bytes`, and computes its ETag.
    pub fn new(bytes: Vec<u8>) -> Self {
        use std::fmt::Write as _;
        let mut tag = String::with_capacity(64);
        for byte in Sha256::digest(&bytes) {
            let _ = write!(tag, "{byte:02X}");
        }
        match (bytes.len() >= WORTH_COMPRESSING).then(|| compress(&bytes)).flatten() {
            Some(packed) => Self { tag, bytes: packed.into(), compressed: true },
            None => Self { tag, bytes: bytes.into(), compressed: false },
        }
    }

    /// Returns the ETag: SHA-256 of the bytes in upper-case hexadecimal.
    pub fn tag(&self) -> &str {
        &self.tag
    }

    /// Returns the uncompressed bytes.
    pub fn plain(&self) -> Bytes {
        if !self.compressed {
            return self.bytes.clone();
        }
        let mut plain = Vec::new();
        let mut unpacked = GzDecoder::new(&*self.bytes).take(MAX_DOCUMENT);
        match unpacked.read_to_end(&mut plain) {
            Ok(_) => plain.into(),
            Err(error) => {
                tracing::error!(%error, "cannot unpack a document of this process' own making");
                Bytes::new()
            }
        }
    }
}

fn compress(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut packed = GzEncoder::new(Vec::with_capacity(bytes.len() / 8), Compression::default());
    packed.write_all(bytes).ok()?;
    packed.finish().ok()
}

/// Returns the document as a JSON response, or 304 if the request's `If-None-Match` has its ETag.
pub fn conditional(document: &Document, request: &HeaderMap) -> Response {
    let mut response = if has(request, &document.tag) {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        response
    } else {
        let packed = document.compressed && accept::takes_gzip(request);
        let bytes = if packed { document.bytes.clone() } else { document.plain() };
        let mut response = Response::new(Body::from(bytes));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if packed {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        response
    };
    if let Ok(tag) = HeaderValue::from_str(&format!("\"{}\"", document.tag)) {
        response.headers_mut().insert(ETAG, tag);
    }
    vary(&mut response);
    response
}

/// Adds `Vary: Accept`, because the response depends on the Accept header.
pub fn vary(response: &mut Response) {
    response.headers_mut().insert(VARY, HeaderValue::from_static("Accept"));
}

/// Returns true if the request's `If-None-Match` contains the ETag `tag`, or `*`.
fn has(request: &HeaderMap, tag: &str) -> bool {
    let known = request.get_all(IF_NONE_MATCH).iter();
    known.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(',')).any(|one| {
        let one = one.trim();
        let one = one.strip_prefix("W/").unwrap_or(one);
        one == "*" || one.strip_prefix('"').and_then(|one| one.strip_suffix('"')) == Some(tag)
    })
}
