//! Upload of a file while it is read: of any size, and without a total time limit.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::TryStreamExt as _;
use http::Method;
use http::header::{CONTENT_LENGTH, HeaderValue};
use http::request::Builder;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Frame;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use stdx::Secret;
use tokio::fs::File;
use tokio::io::AsyncRead;
use tokio::time::{Instant, interval};
use tokio_util::io::ReaderStream;

use super::{Client, Path, reach, read_answer};
use crate::error::ClientError;

/// Size of one read, in bytes.
const PIECE: usize = 256 << 10;
/// Interval of progress reports.
const TELL: Duration = Duration::from_millis(250);
/// Maximum time without progress or response. The box may read the file back from a slow disk.
const STALLED: Duration = Duration::from_secs(300);

/// Request header with the passphrase or key of a backup, percent-encoded.
const PASSPHRASE: &str = "tinbox-passphrase";

/// Content of an upload.
pub struct UploadContent {
    reader: Box<dyn AsyncRead + Send + Unpin>,
    size: Option<u64>,
}

impl UploadContent {
    /// Creates the content of a file of `size` bytes.
    pub fn file(file: File, size: u64) -> Self {
        Self { reader: Box::new(file), size: Some(size) }
    }

    /// Creates the content of a pipe, whose size is not known before its end.
    pub fn pipe(reader: impl AsyncRead + Send + Unpin + 'static) -> Self {
        Self { reader: Box::new(reader), size: None }
    }
}

/// Upload of a backup.
pub struct BackupUpload<'a> {
    /// Description for errors: `verify box.boxbak`.
    pub what: &'a str,
    /// Path that receives the backup: to verify, to store or to restore it.
    pub path: &'a Path,
    /// Passphrase or key that opens the backup.
    pub secret: Option<&'a Secret>,
}

impl Client {
    /// POSTs a backup. Calls `tell` with the number of bytes sent so far.
    ///
    /// # Errors
    /// The upload fails as in [`Client::upload`].
    pub async fn send_backup(
        &self,
        sent: BackupUpload<'_>,
        content: UploadContent,
        tell: impl FnMut(u64),
    ) -> Result<Value, ClientError> {
        let mut request = self.request(Method::POST, sent.path, "", "application/octet-stream");
        if let Some(secret) = sent.secret {
            let encoded = utf8_percent_encode(secret.expose(), NON_ALPHANUMERIC).to_string();
            let mut value = HeaderValue::from_str(&encoded).expect("percent-encoded is ASCII");
            value.set_sensitive(true);
            request = request.header(PASSPHRASE, value);
        }
        self.send_content(sent.what, request, content, tell).await
    }

    /// POSTs a file. Calls `tell` with the number of bytes sent so far.
    ///
    /// # Errors
    /// The request fails, or the box reads no data for [`STALLED`].
    pub async fn upload(
        &self,
        path: &Path,
        query: &str,
        content: UploadContent,
        tell: impl FnMut(u64),
    ) -> Result<Value, ClientError> {
        let request = self.request(Method::POST, path, query, "application/octet-stream");
        self.send_content(&format!("update {path}"), request, content, tell).await
    }

    /// PUTs a file, which replaces the file at `path`. Calls `tell` with the number of bytes sent
    /// so far.
    ///
    /// # Errors
    /// The upload fails as in [`Client::upload`].
    pub async fn put(
        &self,
        path: &Path,
        query: &str,
        content: UploadContent,
        tell: impl FnMut(u64),
    ) -> Result<Value, ClientError> {
        let request = self.request(Method::PUT, path, query, "application/octet-stream");
        self.send_content(&format!("send the {path}"), request, content, tell).await
    }

    async fn send_content(
        &self,
        what: &str,
        request: Builder,
        content: UploadContent,
        mut tell: impl FnMut(u64),
    ) -> Result<Value, ClientError> {
        let sent = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&sent);
        let pieces = ReaderStream::with_capacity(content.reader, PIECE);
        let pieces = pieces.map_ok(move |piece: Bytes| {
            counted.fetch_add(piece.len() as u64, Ordering::Relaxed);
            Frame::data(piece)
        });
        let request = match content.size {
            Some(size) => request.header(CONTENT_LENGTH, size),
            None => request,
        };
        let asking = async {
            let body = StreamBody::new(pieces).boxed_unsync();
            self.read(self.ask(request, body).await?).await
        };
        tokio::pin!(asking);
        let (mut last, mut moved, mut ticks) = (0, Instant::now(), interval(TELL));
        loop {
            tokio::select! {
                answer = &mut asking => {
                    let (code, body) = answer?;
                    return read_answer(what, code, &body);
                }
                _ = ticks.tick() => {
                    let now = sent.load(Ordering::Relaxed);
                    tell(now);
                    if now != last {
                        (last, moved) = (now, Instant::now());
                    } else if moved.elapsed() > STALLED {
                        return Err(reach::silent(&self.server));
                    }
                }
            }
        }
    }
}
