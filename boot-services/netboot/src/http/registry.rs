//! Read-only registry of images (OCI distribution specification 1.1, "Pull").
//!
//! | Path | Answer |
//! |---|---|
//! | `/v2/` | version check: the box is a registry |
//! | `/v2/<name>/manifests/<tag or digest>` | a manifest or index |
//! | `/v2/<name>/blobs/<digest>` | a configuration or layer, with ranges |
//!
//! `<name>` begins with the host of the registry (`ghcr.io/owner/image`), or the query
//! `?ns=ghcr.io` names it, as containerd does for a mirror. Otherwise the registry is Docker Hub,
//! as in Docker.

use std::net::SocketAddr;
use std::sync::Arc;

use artifact_cache::registry::{Document, Manifest, Mirror, Reference};
use artifact_cache::{Digest, DownloadStart, Error, Refusal};
use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header};
use axum::response::Response;
use axum::routing::get;
use percent_encoding::percent_decode_str;

use super::cached::{complete_file, running_download};
use super::content::{Conditions, Record};
use crate::Observer;

const VERSION: HeaderName = HeaderName::from_static("docker-distribution-api-version");
const DIGEST: HeaderName = HeaderName::from_static("docker-content-digest");
/// Value of `Retry-After` in seconds, in error responses for which a retry may help.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("10");

#[derive(Clone)]
struct RouterState {
    /// Mirror of other registries. `None`: the box stores no images.
    mirror: Option<Mirror>,
    observer: Arc<dyn Observer>,
}

/// Object that a path under `/v2/` requests.
#[derive(Debug, PartialEq, Eq)]
enum RegistryRequest {
    Manifest(Reference),
    Blob(Reference, Digest),
}

/// Error response: HTTP status, error code of the specification, and a sentence.
struct RegistryError {
    status: StatusCode,
    code: &'static str,
    message: String,
}

impl RegistryError {
    fn new(status: StatusCode, code: &'static str, message: String) -> Self {
        Self { status, code, message }
    }
}

/// Returns the routes of a registry. Without a `mirror` it refuses every request.
pub fn registry_router(mirror: Option<Mirror>, observer: Arc<dyn Observer>) -> Router {
    let (root, below) = (get(version).fallback(read_only), get(answer).fallback(read_only));
    Router::new()
        .route("/v2", root.clone())
        .route("/v2/", root)
        .route("/v2/{*path}", below)
        .with_state(RouterState { mirror, observer })
}

async fn version() -> Response {
    let mut response = Response::new(Body::from("{}"));
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    with_version(response)
}

async fn read_only(
    State(state): State<RouterState>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    uri: Uri,
) -> Response {
    let record = Record::new(state.observer, peer.ip().to_canonical(), uri.path());
    let why = "this registry is read-only".to_owned();
    refuse(record, RegistryError::new(StatusCode::METHOD_NOT_ALLOWED, "UNSUPPORTED", why))
}

async fn answer(
    State(state): State<RouterState>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let record = Record::new(state.observer, peer.ip().to_canonical(), uri.path());
    let Some(mirror) = state.mirror else {
        let why = "the box has no registry: its configuration has no [images]".to_owned();
        return refuse(record, RegistryError::new(StatusCode::NOT_FOUND, "UNSUPPORTED", why));
    };
    let request = match read(uri.path(), uri.query()) {
        Ok(request) => request,
        Err(error) => return refuse(record, error),
    };
    let (RegistryRequest::Manifest(reference) | RegistryRequest::Blob(reference, _)) = &request;
    if !mirror.offers(reference) {
        let why =
            format!("no workflow needs {reference}, and images.mirror does not list its registry");
        return refuse(record, RegistryError::new(StatusCode::FORBIDDEN, "DENIED", why));
    }
    let response = match request {
        RegistryRequest::Manifest(reference) => match mirror.manifest(&reference).await {
            Ok(document) => manifest(document, &headers, record),
            Err(refusal) => refuse(record, missing(&reference, refusal)),
        },
        RegistryRequest::Blob(reference, digest) => {
            let (remote, download) = mirror.blob(&reference, digest).await;
            let response = match download.started().await {
                DownloadStart::Complete(blob) => complete_file(blob, &headers, record).await,
                DownloadStart::Running(download) => {
                    running_download(download, &remote, &headers, record)
                }
                DownloadStart::Failed(error) => refuse(record, not_fetched(&error)),
            };
            with_digest(response, digest)
        }
    };
    with_version(response)
}

/// Parses a path and query.
fn read(path: &str, query: Option<&str>) -> Result<RegistryRequest, RegistryError> {
    let bad = |code, why: String| RegistryError::new(StatusCode::BAD_REQUEST, code, why);
    let decoded = |text: &str| percent_decode_str(text).decode_utf8().map(|it| it.into_owned());
    let path =
        decoded(path).map_err(|_| bad("NAME_INVALID", "the path is not UTF-8".to_owned()))?;
    let pairs = query.unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
    let ns = pairs.into_iter().find(|(name, _)| *name == "ns").map(|(_, value)| decoded(value));
    let ns = ns.transpose().map_err(|_| bad("NAME_INVALID", "ns is not UTF-8".to_owned()))?;
    let mut parts = path.strip_prefix("/v2/").unwrap_or_default().rsplitn(3, '/');
    let (what, kind, name) = (parts.next(), parts.next(), parts.next());
    let (Some(what), Some(kind @ ("manifests" | "blobs")), Some(name)) = (what, kind, name) else {
        let why = "this registry serves manifests and blobs, but no lists".to_owned();
        return Err(RegistryError::new(StatusCode::NOT_FOUND, "UNSUPPORTED", why));
    };
    let reference = Reference::asked(name, ns.as_deref(), what);
    let reference = reference.map_err(|why| bad("NAME_INVALID", why))?;
    match (kind, &reference.manifest) {
        ("manifests", _) => Ok(RegistryRequest::Manifest(reference)),
        (_, Manifest::Digest(digest)) => Ok(RegistryRequest::Blob(reference.clone(), *digest)),
        _ => {
            Err(bad("DIGEST_INVALID", format!("{what:?} is not a digest like sha256:<64 digits>")))
        }
    }
}

fn manifest(document: Document, headers: &HeaderMap, mut record: Record) -> Response {
    let digest = document.digest();
    let tag = format!("\"{digest}\"");
    let known = Conditions::read(headers).if_none_match.is_some_and(|known| known == tag);
    let response = if known {
        record.empty(StatusCode::NOT_MODIFIED)
    } else {
        record.bytes = document.bytes.len() as u64;
        let mut response = record.empty(StatusCode::OK);
        *response.body_mut() = Body::from(document.bytes);
        if let Ok(kind) = HeaderValue::from_str(&document.media_type) {
            response.headers_mut().insert(header::CONTENT_TYPE, kind);
        }
        response
    };
    with_digest(response, digest)
}

fn missing(reference: &Reference, refusal: Refusal) -> RegistryError {
    match refusal {
        Refusal::Later(why) => {
            let why = format!("{reference} is not available now: {why}");
            RegistryError::new(StatusCode::SERVICE_UNAVAILABLE, "UNAVAILABLE", why)
        }
        Refusal::Never(why) => {
            let why = format!("{reference} is not available: {why}");
            RegistryError::new(StatusCode::NOT_FOUND, "MANIFEST_UNKNOWN", why)
        }
    }
}

fn not_fetched(error: &Error) -> RegistryError {
    let why = stdx::chain(error);
    if error.is_passing() {
        return RegistryError::new(StatusCode::SERVICE_UNAVAILABLE, "UNAVAILABLE", why);
    }
    RegistryError::new(StatusCode::NOT_FOUND, "BLOB_UNKNOWN", why)
}

fn refuse(record: Record, error: RegistryError) -> Response {
    let RegistryError { status, code, message } = error;
    let body = serde_json::json!({ "errors": [{ "code": code, "message": message }] });
    let mut response = record.empty(status);
    *response.body_mut() = Body::from(body.to_string());
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    if status == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().insert(header::RETRY_AFTER, RETRY_AFTER);
    }
    with_version(response)
}

fn with_version(mut response: Response) -> Response {
    response.headers_mut().insert(VERSION, HeaderValue::from_static("registry/2.0"));
    response
}

fn with_digest(mut response: Response, digest: Digest) -> Response {
    let is_found = response.status().is_success() || response.status() == StatusCode::NOT_MODIFIED;
    if is_found && let Ok(value) = HeaderValue::from_str(&digest.to_string()) {
        response.headers_mut().insert(DIGEST, value);
    }
    response
}

#[cfg(test)]
mod tests;
