//! Serves files of other servers from the cache. A file that is still being downloaded is forwarded
//! as it arrives.

use std::net::SocketAddr;
use std::sync::Arc;

use artifact_cache::{
    Blob, CacheAccess, Checksum, DownloadStart, Error, RemoteFile, RunningDownload,
};
use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::Response;
use axum::routing::get;
use futures_util::StreamExt as _;
use http_body_util::BodyExt as _;
use percent_encoding::percent_decode_str;

use super::content::{self, Conditions, Record, ResponseHead};
use crate::Observer;
use crate::files::OpenFile;

/// Value of `Retry-After` in seconds, in error responses for which a retry may help.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("10");

#[derive(Clone)]
struct RouterState {
    access: CacheAccess,
    observer: Arc<dyn Observer>,
}

/// Returns the routes for `/cache/<key>/<path>`: only the files that the cache offers, downloaded
/// on request, each for the machines that may read it. Any other client gets 404. If the origin
/// server fails, the response is a sentence, with 502 if a retry may help and 424 otherwise. If the
/// origin server fails after the response has begun, the body is cut off.
pub fn cached_router(access: CacheAccess, observer: Arc<dyn Observer>) -> Router {
    Router::new()
        .route("/cache/{key}/{*name}", get(cached))
        .with_state(RouterState { access, observer })
}

async fn cached(
    State(state): State<RouterState>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let peer = peer.ip().to_canonical();
    let record = Record::new(state.observer, peer, uri.path());
    let path = percent_decode_str(uri.path()).decode_utf8();
    let Some(remote) = path.ok().and_then(|path| state.access.offered(&path, peer)) else {
        return record.empty(StatusCode::NOT_FOUND);
    };
    match state.access.cache().fetch(&remote).await.started().await {
        DownloadStart::Complete(blob) => complete_file(blob, &headers, record).await,
        DownloadStart::Running(download) => running_download(download, &remote, &headers, record),
        DownloadStart::Failed(error) => failed(&error, record),
    }
}

pub(super) async fn complete_file(blob: Blob, headers: &HeaderMap, record: Record) -> Response {
    match OpenFile::blob(&blob) {
        Ok(OpenFile { file, size, tag }) => {
            let opened = OpenFile { file: tokio::fs::File::from_std(file), size, tag };
            let response = content::answer(opened, headers, record).await;
            // The blob cannot be evicted while the body is read.
            response.map(|body| {
                Body::new(body.map_frame(move |frame| {
                    let _reading = &blob;
                    frame
                }))
            })
        }
        Err(error) => {
            tracing::warn!(path = %blob.path.display(), %error, "a cached file cannot be opened");
            record.empty(StatusCode::INTERNAL_SERVER_ERROR)
        }
    }
}

pub(super) fn running_download(
    download: RunningDownload,
    remote: &RemoteFile,
    headers: &HeaderMap,
    mut record: Record,
) -> Response {
    let head = response_head(download.total, remote.checksum, Conditions::read(headers));
    record.status = head.status;
    let end = download.total.map(|_| head.first + head.length);
    let body = if end == Some(head.first) {
        Body::empty()
    } else {
        let bytes = download.bytes(head.first, end).map(move |chunk| {
            // The closure captures the whole record, so that it lives as long as the body.
            let record = &mut record;
            record.bytes += chunk.as_ref().map_or(0, |bytes| bytes.len() as u64);
            chunk
        });
        Body::from_stream(bytes)
    };
    head.respond(body)
}

/// Returns the response head for a file that is not complete yet. The entity tag is that of the
/// complete file, or missing if unknown: a tag that changed when the file is complete would prevent
/// a client from resuming.
fn response_head(
    total: Option<u64>,
    checksum: Option<Checksum>,
    conditions: Conditions<'_>,
) -> ResponseHead {
    let Some(total) = total else {
        let kind = (header::CONTENT_TYPE, "application/octet-stream".to_owned());
        return ResponseHead { status: StatusCode::OK, first: 0, length: 0, headers: vec![kind] };
    };
    if let Some(Checksum::Sha256(digest)) = checksum {
        return ResponseHead::of(conditions, total, &format!("\"{digest}\""));
    }
    let range = conditions.range.filter(|_| conditions.if_range.is_none());
    let conditions = Conditions { range, ..Conditions::default() };
    let mut head = ResponseHead::of(conditions, total, "");
    head.headers.retain(|(name, _)| *name != header::ETAG);
    head
}

fn failed(error: &Error, record: Record) -> Response {
    let sentence = stdx::chain(error);
    if !error.is_passing() {
        return record.sentence(StatusCode::FAILED_DEPENDENCY, &sentence);
    }
    let mut response = record.sentence(StatusCode::BAD_GATEWAY, &sentence);
    response.headers_mut().insert(header::RETRY_AFTER, RETRY_AFTER);
    response
}

#[cfg(test)]
mod tests {
    use artifact_cache::Digest;

    use super::*;

    #[test]
    fn a_file_on_its_way_is_answered_like_one_that_is_here() {
        let digest = Digest::of(b"x");
        let tag = format!("\"{digest}\"");
        let of = |total, checksum, range, if_range| {
            let conditions = Conditions { range, if_range, if_none_match: None };
            let head = response_head(total, checksum, conditions);
            let tagged = head.headers.iter().any(|(name, _)| *name == header::ETAG);
            (head.status.as_u16(), head.first, head.length, tagged)
        };
        let known = Some(Checksum::Sha256(digest));
        assert_eq!(of(Some(10), known, None, None), (200, 0, 10, true));
        assert_eq!(of(Some(10), known, Some("bytes=4-"), Some(&*tag)), (206, 4, 6, true));
        assert_eq!(of(Some(10), known, Some("bytes=4-"), Some("\"old\"")), (200, 0, 10, true));
        assert_eq!(of(Some(10), None, Some("bytes=4-"), None), (206, 4, 6, false));
        assert_eq!(of(Some(10), None, Some("bytes=4-"), Some(&*tag)), (200, 0, 10, false));
        assert_eq!(of(Some(10), None, Some("bytes=10-"), None), (416, 0, 0, false));
        assert_eq!(of(None, known, Some("bytes=4-"), None), (200, 0, 0, false));
    }
}
