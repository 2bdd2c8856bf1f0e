//! HTTP client of one server: a login, a time limit and a size limit, and no redirects.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{AUTHORIZATION, HeaderMap, HeaderValue, WWW_AUTHENTICATE};
use http::{Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use http_digest::Challenge;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client as HyperClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use resolver::ConnectorNames;
use rustls::{ClientConfig, RootCertStore};
use stdx::Secret;
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::Error;

/// Maximum time of a request with its response. A webhook may wait until the machine obeyed.
const TIME_MAX: Duration = Duration::from_secs(60);
/// Maximum time to connect.
const CONNECT_MAX: Duration = Duration::from_secs(10);
/// Length of the random value of the client in a digest, in bytes.
const CNONCE_BYTES: usize = 16;
/// Maximum size of a response in bytes, as that of Rufio's provider `rpc`.
const BODY_BYTES_MAX: usize = 512 << 10;

/// Verification of the server's certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tls {
    /// A public authority must have signed the certificate.
    Verified,
    /// Any certificate is accepted, because the owner wrote `insecureTLS`.
    Unverified,
}

/// Login at the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Login {
    /// No header, because the server has no accounts.
    None,
    /// Header `Authorization: Bearer` (RFC 6750).
    Bearer(Secret),
    /// User name and password by HTTP Basic, sent with each request.
    Basic(String, Secret),
    /// User name and password by HTTP Digest (RFC 7616), never by Basic.
    Digest(String, Secret),
}

/// Request to the server.
#[derive(Debug, Clone)]
pub struct Call {
    pub method: Method,
    pub uri: Uri,
    pub headers: HeaderMap,
    pub body: Bytes,
    /// Name of the request, for errors.
    pub what: String,
}

/// Digest challenge with the number of requests that answered it.
struct Nonce {
    challenge: Challenge,
    count: u32,
}

/// Client of one server. It sends one request at a time, because plugs serve few connections.
pub struct Client {
    http: HyperClient<HttpsConnector<HttpConnector<ConnectorNames>>, Full<Bytes>>,
    login: Login,
    /// Last digest challenge, which the next request uses again.
    nonce: Mutex<Option<Nonce>>,
}

impl Client {
    /// Creates a client; the first request connects.
    pub fn new(tls: Tls, login: Login) -> Result<Self, Error> {
        let mut tcp = HttpConnector::new_with_resolver(ConnectorNames);
        tcp.enforce_http(false);
        tcp.set_connect_timeout(Some(CONNECT_MAX));
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(config(tls)?)
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        // Plugs close idle connections without notice.
        let http =
            HyperClient::builder(TokioExecutor::new()).pool_max_idle_per_host(0).build(connector);
        Ok(Self { http, login, nonce: Mutex::default() })
    }

    /// Sends a request and returns the body of a successful response.
    pub async fn send(&self, call: &Call) -> Result<Bytes, Error> {
        let server = server(&call.uri);
        // Only one request at a time: a digest counts its requests.
        let mut nonce = self.nonce.lock().await;
        let sent = timeout(TIME_MAX, self.exchange(call, &mut nonce)).await;
        let (status, body) = sent
            .unwrap_or_else(|_| Err(Error::NoAnswer { server: server.clone(), after: TIME_MAX }))?;
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(Error::Login { server }),
            status if status.is_success() => Ok(body),
            status => Err(Error::Status { server, what: call.what.clone(), status }),
        }
    }

    /// Sends a request, and again if the server asks for a digest with a new nonce.
    async fn exchange(
        &self,
        call: &Call,
        nonce: &mut Option<Nonce>,
    ) -> Result<(StatusCode, Bytes), Error> {
        let (status, headers, body) = self.once(call, nonce.as_mut()).await?;
        let is_digest = matches!(self.login, Login::Digest(..));
        if status != StatusCode::UNAUTHORIZED || !is_digest {
            return Ok((status, body));
        }
        let asked = headers.get_all(WWW_AUTHENTICATE).iter().filter_map(|it| it.to_str().ok());
        // A server that offers only Basic gets no password.
        let Ok(challenge) = Challenge::find(asked) else { return Ok((status, body)) };
        let new = nonce.insert(Nonce { challenge, count: 0 });
        let (status, _, body) = self.once(call, Some(new)).await?;
        Ok((status, body))
    }

    async fn once(
        &self,
        call: &Call,
        nonce: Option<&mut Nonce>,
    ) -> Result<(StatusCode, HeaderMap, Bytes), Error> {
        let mut request = Request::new(Full::new(call.body.clone()));
        *request.method_mut() = call.method.clone();
        *request.uri_mut() = call.uri.clone();
        *request.headers_mut() = call.headers.clone();
        if let Some(value) = self.authorization(call, nonce)? {
            request.headers_mut().insert(AUTHORIZATION, value);
        }
        let unreachable = |reason| Error::Unreachable { server: server(&call.uri), reason };
        let response = self.http.request(request).await;
        let response = response.map_err(|error| unreachable(stdx::chain(&error)))?;
        let (head, body) = response.into_parts();
        let body = Limited::new(body, BODY_BYTES_MAX).collect().await;
        let body = body.map_err(|error| unreachable(error.to_string()))?.to_bytes();
        Ok((head.status, head.headers, body))
    }

    fn authorization(
        &self,
        call: &Call,
        nonce: Option<&mut Nonce>,
    ) -> Result<Option<HeaderValue>, Error> {
        let text = match (&self.login, nonce) {
            (Login::None, _) | (Login::Digest(..), None) => return Ok(None),
            (Login::Bearer(token), _) => format!("Bearer {}", token.expose()),
            (Login::Basic(user, password), _) => {
                format!("Basic {}", STANDARD.encode(format!("{user}:{}", password.expose())))
            }
            (Login::Digest(user, password), Some(nonce)) => {
                nonce.count += 1;
                let path = call.uri.path_and_query().map_or("/", |it| it.as_str());
                let request = (call.method.as_str(), path);
                let cnonce = stdx::random_hex(CNONCE_BYTES);
                nonce.challenge.authorization((user, password), request, &cnonce, nonce.count)
            }
        };
        let unusable = |reason: String| Error::Invalid { field: "the login", reason };
        let value = HeaderValue::try_from(text);
        let mut value = value.map_err(|_| unusable("expected text without controls".to_owned()))?;
        value.set_sensitive(true);
        Ok(Some(value))
    }
}

/// Returns host and port of a URL, for errors.
pub fn server(uri: &Uri) -> String {
    uri.authority().map(|it| it.as_str().to_owned()).unwrap_or_default()
}

/// Reads a URL of the owner: `http` or `https` with a host, without a password.
pub fn url(field: &'static str, text: &str) -> Result<Uri, Error> {
    let invalid = |reason: &str| Error::Invalid { field, reason: reason.to_owned() };
    let uri: Uri = text.parse().map_err(|_| invalid("expected a URL"))?;
    let is_known = matches!(uri.scheme_str(), Some("http" | "https"));
    match uri.authority() {
        Some(authority) if is_known && !authority.as_str().contains('@') => Ok(uri),
        Some(_) if is_known => Err(invalid("expected no user or password in the URL")),
        _ => Err(invalid("expected a URL with http:// or https:// and a host")),
    }
}

fn config(tls: Tls) -> Result<ClientConfig, Error> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
        .map_err(|error| Error::Invalid { field: "TLS", reason: error.to_string() })?;
    Ok(match tls {
        Tls::Verified => {
            let roots: RootCertStore = webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect();
            builder.with_root_certificates(roots).with_no_client_auth()
        }
        Tls::Unverified => builder
            .dangerous()
            .with_custom_certificate_verifier(tls_pin::any_certificate(provider))
            .with_no_client_auth(),
    })
}

#[cfg(test)]
mod tests;
