//! Final processing of a response: YAML or gzip if requested, no body for HEAD.

use std::io::Write as _;

use axum::body::Body;
use axum::body::HttpBody as _;
use axum::response::Response;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, VARY};
use http::{HeaderMap, HeaderValue, Method};
use http_body_util::BodyExt as _;

use super::gzip_body::GzipBody;
use super::yaml;
use crate::wire::{accept, response};
use resources::{Reason, StatusError};

/// Minimum size in bytes of a compressed response (upstream's threshold).
pub const MIN_COMPRESSED: u64 = 128 * 1024;
/// Maximum bytes of JSON that are converted to YAML; a larger response gets 406. The conversion
/// parses the whole JSON into memory.
pub const MAX_YAML: u64 = 8 * 1024 * 1024;
/// Memory of the gzip compressor in bytes, without input and output (zlib at its fastest level).
pub const ENCODER_BYTES: usize = 256 * 1024;
/// Content type of responses before conversion.
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Marker in a response's extensions: a long list, which is compressed while it is sent.
#[derive(Debug, Clone, Copy)]
pub struct PagedResponse;

/// Properties of a request that determine the final form of its response.
pub struct ResponseOptions {
    gzip: bool,
    head: bool,
    yaml: bool,
}

impl ResponseOptions {
    /// Reads the properties from method and headers of a request.
    pub fn of(method: &Method, headers: &HeaderMap) -> Self {
        Self {
            gzip: accept::takes_gzip(headers),
            head: *method == Method::HEAD,
            yaml: accept::prefers_yaml(headers),
        }
    }

    /// Converts the response to the form that the request accepts.
    pub async fn apply(self, response: Response) -> Response {
        let is_json = response.headers().get(CONTENT_TYPE) == Some(&JSON);
        let response = if self.yaml && is_json { in_yaml(response).await } else { response };
        let size = response.body().size_hint().exact();
        if self.head {
            let mut response = response;
            if let Some(size) = size {
                response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(size));
            }
            return response.map(|_| Body::empty());
        }
        if self.gzip && response.extensions().get::<PagedResponse>().is_some() {
            let (mut head, body) = response.into_parts();
            packed(&mut head.headers);
            return Response::from_parts(head, Body::new(GzipBody::new(body)));
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
        // Compression takes milliseconds, so it runs on a blocking thread.
        let packed = tokio::task::spawn_blocking(move || pack(&plain)).await;
        let Ok(Ok(packed)) = packed else { return Response::from_parts(head, Body::from(body)) };
        self::packed(&mut head.headers);
        Response::from_parts(head, Body::from(packed))
    }
}

/// Sets the headers of a gzip-compressed body.
fn packed(headers: &mut HeaderMap) {
    headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    headers.append(VARY, HeaderValue::from_static("Accept-Encoding"));
}

/// Converts the response to YAML; a watch, which has no end, stays unchanged.
async fn in_yaml(response: Response) -> Response {
    let Some(size) = response.body().size_hint().exact() else { return response };
    if size > MAX_YAML {
        let why = format!("{size} bytes are too many for YAML: request JSON, or pages");
        return response::failure(&StatusError::new(Reason::NotAcceptable, why));
    }
    let (mut head, body) = response.into_parts();
    let Ok(body) = body.collect().await else {
        return Response::from_parts(head, Body::empty());
    };
    let body = body.to_bytes();
    let plain = body.clone();
    let made = tokio::task::spawn_blocking(move || yaml::write(&plain)).await;
    let Ok(Some(made)) = made else { return Response::from_parts(head, Body::from(body)) };
    head.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/yaml"));
    Response::from_parts(head, Body::from(made))
}

fn pack(plain: &Bytes) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(plain.len() / 4), Compression::fast());
    encoder.write_all(plain)?;
    encoder.finish()
}
