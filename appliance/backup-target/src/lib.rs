//! Folder on another server for the backups of the box: by PUT and DELETE, as WebDAV (RFC 4918)
//! and many file servers have them.
//!
//! ```text
//! https://nas.example/backups/box-7f3a-2026-11-29T02-30-00Z.boxbak
//! ```
//!
//! Never: sends a password without TLS, follows a redirect, deletes a file that this box has not
//! stored, or makes a backup itself.
//!
//! Enter at [`Target`] (requests) and [`SentBackups`] (what was stored, and when the next is due).

mod error;
mod sent;

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::TryStreamExt as _;
use http::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use http::{Method, Request, StatusCode, Uri};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Empty, StreamBody};
use hyper::body::Frame;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client as HyperClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use resolver::ConnectorNames;
use rustls::{ClientConfig, RootCertStore};
use stdx::Secret;
use tls_pin::Fingerprint;
use tokio::time::timeout;
use tokio_util::io::ReaderStream;

pub use error::TargetError;
pub use sent::{SENT_MAX, SentBackup, SentBackups, is_due};

/// Maximum time to connect.
const CONNECT_MAX: Duration = Duration::from_secs(10);
/// Maximum time of a request with its response. A backup has some 10 MB.
const TIME_MAX: Duration = Duration::from_secs(30 * 60);

/// Body of a request: a file in pieces.
type Body = UnsyncBoxBody<Bytes, io::Error>;

/// Folder on a server, with the login and the trust that it needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetOptions {
    /// URL of the folder.
    pub folder: String,
    /// User name and password for HTTP Basic; `None` for a server without accounts.
    pub login: Option<(String, Secret)>,
    /// SHA-256 of the server's certificate, for a server with a certificate of its own; `None` if
    /// a public authority signed it.
    pub fingerprint: Option<String>,
}

/// Client of the folder. Each request connects anew, because there is one a day.
pub struct Target {
    http: HyperClient<HttpsConnector<HttpConnector<ConnectorNames>>, Body>,
    folder: String,
    host: String,
    authorization: Option<HeaderValue>,
}

impl Target {
    /// Creates a client; the first request connects.
    ///
    /// # Errors
    /// The URL, the login or the fingerprint is not valid, or the login would be sent without TLS.
    pub fn new(options: &TargetOptions) -> Result<Self, TargetError> {
        let uri = folder(&options.folder)?;
        if options.login.is_some() && uri.scheme_str() != Some("https") {
            return Err(TargetError::Options("a login needs a URL with https://".to_owned()));
        }
        let fingerprint = options.fingerprint.as_deref().map(str::parse::<Fingerprint>);
        let fingerprint =
            fingerprint.transpose().map_err(|error| TargetError::Options(error.to_string()))?;
        let mut tcp = HttpConnector::new_with_resolver(ConnectorNames);
        tcp.enforce_http(false);
        tcp.set_connect_timeout(Some(CONNECT_MAX));
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls(fingerprint)?)
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        let http =
            HyperClient::builder(TokioExecutor::new()).pool_max_idle_per_host(0).build(connector);
        let authorization = options.login.as_ref().map(authorization).transpose()?;
        let host = uri.authority().map(|it| it.as_str().to_owned()).unwrap_or_default();
        let folder = options.folder.trim_end_matches('/').to_owned();
        Ok(Self { http, folder, host, authorization })
    }

    /// Returns host and port of the server.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Stores a file.
    ///
    /// # Errors
    /// The file cannot be read, or the server cannot be reached or refuses the file.
    pub async fn put(&self, name: &str, file: File) -> Result<(), TargetError> {
        let size = file.metadata().map_err(TargetError::File)?.len();
        let pieces = ReaderStream::new(tokio::fs::File::from_std(file)).map_ok(Frame::data);
        let body = StreamBody::new(pieces).boxed_unsync();
        let mut request = self.request(Method::PUT, name, body)?;
        request.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(size));
        let kind = HeaderValue::from_static("application/octet-stream");
        request.headers_mut().insert(CONTENT_TYPE, kind);
        match self.send(request).await? {
            status if status.is_success() => Ok(()),
            status => Err(self.refused(status)),
        }
    }

    /// Removes a file. A file that is gone counts as removed.
    ///
    /// # Errors
    /// The server cannot be reached, or refuses.
    pub async fn remove(&self, name: &str) -> Result<(), TargetError> {
        let nothing = Empty::new().map_err(|never| match never {}).boxed_unsync();
        match self.send(self.request(Method::DELETE, name, nothing)?).await? {
            StatusCode::NOT_FOUND | StatusCode::GONE => Ok(()),
            status if status.is_success() => Ok(()),
            status => Err(self.refused(status)),
        }
    }

    fn request(
        &self,
        method: Method,
        name: &str,
        body: Body,
    ) -> Result<Request<Body>, TargetError> {
        let uri: Uri = format!("{}/{name}", self.folder)
            .parse()
            .map_err(|_| TargetError::Options(format!("{name:?} is not a valid file name")))?;
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        if let Some(value) = &self.authorization {
            request.headers_mut().insert(AUTHORIZATION, value.clone());
        }
        Ok(request)
    }

    async fn send(&self, request: Request<Body>) -> Result<StatusCode, TargetError> {
        let host = || self.host.clone();
        match timeout(TIME_MAX, self.http.request(request)).await {
            Ok(Ok(response)) => Ok(response.status()),
            Ok(Err(error)) => {
                Err(TargetError::Unreachable { host: host(), reason: stdx::chain(&error) })
            }
            Err(_) => Err(TargetError::NoAnswer { host: host(), after: TIME_MAX }),
        }
    }

    fn refused(&self, status: StatusCode) -> TargetError {
        TargetError::Status { host: self.host.clone(), status }
    }
}

/// Reads the URL of a folder: `https` or `http` with a host, without a login or a query.
fn folder(text: &str) -> Result<Uri, TargetError> {
    let invalid = |why: &str| TargetError::Options(format!("{text:?} is not valid: {why}"));
    let uri: Uri = text.parse().map_err(|_| invalid("expected a URL"))?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) {
        return Err(invalid("expected a URL with https://"));
    }
    let authority = uri.authority().ok_or_else(|| invalid("expected a host"))?;
    if authority.as_str().contains('@') || uri.query().is_some() {
        return Err(invalid("expected neither a login nor a query in the URL"));
    }
    Ok(uri)
}

fn authorization((user, password): &(String, Secret)) -> Result<HeaderValue, TargetError> {
    if user.contains(':') {
        return Err(TargetError::Options("a user name has no colon".to_owned()));
    }
    let text = format!("Basic {}", STANDARD.encode(format!("{user}:{}", password.expose())));
    let mut value = HeaderValue::try_from(text)
        .map_err(|_| TargetError::Options("the login has control characters".to_owned()))?;
    value.set_sensitive(true);
    Ok(value)
}

fn tls(fingerprint: Option<Fingerprint>) -> Result<ClientConfig, TargetError> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
        .map_err(|error| TargetError::Options(error.to_string()))?;
    Ok(match fingerprint {
        Some(fingerprint) => builder
            .dangerous()
            .with_custom_certificate_verifier(tls_pin::pinned_certificate(fingerprint, provider))
            .with_no_client_auth(),
        None => {
            let roots: RootCertStore = webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect();
            builder.with_root_certificates(roots).with_no_client_auth()
        }
    })
}

#[cfg(test)]
mod tests;
