//! One HTTP/1.1 connection to a BMC.

use std::time::Duration;

use bytes::Bytes;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONNECTION, CONTENT_TYPE, ETAG, HOST, HeaderMap,
    HeaderName, HeaderValue, IF_MATCH, LOCATION, RETRY_AFTER, USER_AGENT,
};
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper_util::rt::TokioIo;
use tls_pin::Fingerprint;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use super::{Endpoint, Security};
use crate::Error;

/// Maximum time of one connection attempt, with TLS. Slow BMCs need seconds for a handshake.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// Connection attempts, because a BMC that starts drops the first packets.
const CONNECT_ATTEMPTS: u32 = 2;
/// Wait between two attempts.
const CONNECT_PAUSE: Duration = Duration::from_millis(500);
/// Time after which a connection is not used again. Some BMCs stall on idle connections.
const IDLE_LIMIT: Duration = Duration::from_secs(5);
/// Age after which a connection is not used again.
const REUSE_LIMIT: Duration = Duration::from_secs(30);
/// Age at which a connection is closed; longer than [`REUSE_LIMIT`] and one turn together.
const LIFE: Duration = Duration::from_secs(150);
/// Maximum size of a response, in bytes. A collection of 1,000 log entries has about 1 MiB.
const BODY_BYTES_MAX: usize = 4 << 20;
/// Maximum size of the head of a response, in bytes.
const HEAD_BYTES_MAX: usize = 32 << 10;

/// Header of a session's token (DSP0266 §13.3).
pub const TOKEN: HeaderName = HeaderName::from_static("x-auth-token");
/// Header with the version of the protocol (DSP0266 §6.5).
const ODATA: HeaderName = HeaderName::from_static("odata-version");

/// Request to the service.
#[derive(Debug, Clone)]
pub struct Call<'a> {
    pub method: Method,
    pub path: &'a str,
    pub body: Option<Bytes>,
    /// Value of `If-Match` (RFC 9110 §13.1.1).
    pub etag: Option<&'a str>,
    /// Header of the login, with its value.
    pub login: Option<(HeaderName, HeaderValue)>,
    /// True to ask for a response without compression, which makes versions weak on some BMCs.
    pub identity: bool,
}

/// HTTP response, of any status.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub etag: Option<String>,
    pub location: Option<String>,
    pub token: Option<String>,
    /// Seconds of the header `Retry-After`.
    pub retry_after: Option<u64>,
    pub body: Bytes,
}

/// Failure of a request.
#[derive(Debug)]
pub enum SendFailure {
    /// The connection was closed before the request was sent.
    NotSent,
    /// The connection failed after the request was sent, at least in part.
    Sent(String),
}

/// Open connection; the drop closes it.
pub struct Connection {
    sender: SendRequest<Full<Bytes>>,
    task: JoinHandle<()>,
    host: String,
    opened: Instant,
    used: Instant,
    /// True after the first response.
    pub has_answered: bool,
    /// Certificate of the BMC; `None` without TLS.
    pub certificate: Option<Fingerprint>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Connection {
    /// Connects to the BMC. `pin` is the expected certificate.
    pub async fn open(endpoint: &Endpoint, pin: Option<Fingerprint>) -> Result<Self, Error> {
        let start = Instant::now();
        let mut attempt = 1;
        loop {
            let error = match timeout(CONNECT_LIMIT, Self::attempt(endpoint, pin)).await {
                Ok(Ok(connection)) => return Ok(connection),
                Ok(Err(error @ Error::Connect { .. })) => error,
                Ok(Err(error)) => return Err(error),
                Err(_) => Error::NoAnswer { after: start.elapsed() },
            };
            if attempt >= CONNECT_ATTEMPTS {
                return Err(error);
            }
            attempt += 1;
            sleep(CONNECT_PAUSE).await;
        }
    }

    async fn attempt(endpoint: &Endpoint, pin: Option<Fingerprint>) -> Result<Self, Error> {
        let stream = connect(endpoint).await?;
        let broken = |error: hyper::Error| Error::Lost {
            step: "the connection".to_owned(),
            reason: stdx::chain(&error),
        };
        let mut builder = Builder::new();
        builder.max_buf_size(HEAD_BYTES_MAX);
        let (sender, task, certificate) = match endpoint.security {
            Security::Plain => {
                let io = TokioIo::new(stream);
                let (sender, connection) = builder.handshake(io).await.map_err(broken)?;
                (sender, tokio::spawn(limited(connection)), None)
            }
            Security::Tls(_) => {
                let (stream, certificate) = tls_pin::start(stream, pin).await?;
                let io = TokioIo::new(stream);
                let (sender, connection) = builder.handshake(io).await.map_err(broken)?;
                (sender, tokio::spawn(limited(connection)), Some(certificate))
            }
        };
        let (opened, used) = (Instant::now(), Instant::now());
        let host = authority(endpoint);
        Ok(Self { sender, task, host, opened, used, has_answered: false, certificate })
    }

    /// Returns true if another request may use the connection.
    pub fn is_fresh(&self) -> bool {
        !self.sender.is_closed()
            && self.used.elapsed() < IDLE_LIMIT
            && self.opened.elapsed() < REUSE_LIMIT
    }

    /// Sends one request and reads the whole response. The flag of the result is true if the
    /// connection stays open.
    pub async fn send(&mut self, call: &Call<'_>) -> Result<(Answer, bool), SendFailure> {
        self.sender.ready().await.map_err(|_| SendFailure::NotSent)?;
        let request = self.request(call).map_err(|_| SendFailure::NotSent)?;
        let answer =
            self.sender.try_send_request(request).await.map_err(|mut error| {
                match error.take_message() {
                    Some(_) => SendFailure::NotSent,
                    None => SendFailure::Sent(stdx::chain(error.error())),
                }
            })?;
        let (head, body) = answer.into_parts();
        let body = Limited::new(body, BODY_BYTES_MAX).collect().await;
        let body = body.map_err(|error| SendFailure::Sent(error.to_string()))?.to_bytes();
        self.used = Instant::now();
        self.has_answered = true;
        let stays_open = !text(&head.headers, &CONNECTION)
            .is_some_and(|value| value.to_ascii_lowercase().contains("close"));
        let answer = Answer {
            status: head.status.as_u16(),
            etag: text(&head.headers, &ETAG),
            location: text(&head.headers, &LOCATION),
            token: text(&head.headers, &TOKEN),
            retry_after: text(&head.headers, &RETRY_AFTER).and_then(|it| it.trim().parse().ok()),
            body,
        };
        Ok((answer, stays_open))
    }

    fn request(&self, call: &Call<'_>) -> http::Result<Request<Full<Bytes>>> {
        let mut request = Request::builder()
            .method(call.method.clone())
            .uri(call.path)
            .header(HOST, &self.host)
            .header(USER_AGENT, "tinbox")
            .header(ACCEPT, "application/json")
            .header(ODATA, "4.0");
        if call.identity {
            request = request.header(ACCEPT_ENCODING, "identity");
        }
        if call.body.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        if let Some(etag) = call.etag {
            request = request.header(IF_MATCH, etag);
        }
        if let Some((name, value)) = &call.login {
            request = request.header(name, value);
        }
        request.body(Full::from(call.body.clone().unwrap_or_default()))
    }
}

/// Returns host and port as in a URL.
pub fn authority(endpoint: &Endpoint) -> String {
    let Endpoint { host, port, .. } = endpoint;
    match host.contains(':') {
        true => format!("[{host}]:{port}"),
        false => format!("{host}:{port}"),
    }
}

/// Returns the header of HTTP Basic (RFC 7617).
pub fn basic(username: &str, password: &str) -> Result<(HeaderName, HeaderValue), Error> {
    use base64::Engine as _;
    if username.contains(|char: char| char == ':' || char.is_control()) {
        return Err(Error::UserName);
    }
    let login = base64::engine::general_purpose::STANDARD.encode(format!("{username}:{password}"));
    let value = HeaderValue::try_from(format!("Basic {login}"));
    let mut value = value.map_err(|_| Error::UserName)?;
    value.set_sensitive(true);
    Ok((AUTHORIZATION, value))
}

fn text(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
}

async fn connect(endpoint: &Endpoint) -> Result<TcpStream, Error> {
    let port = endpoint.port;
    let found = resolver::system().lookup(&endpoint.host, port).await;
    let found = found.map_err(|error| Error::Resolve { source: Some(error) })?;
    let peer = *found.first().ok_or(Error::Resolve { source: None })?;
    TcpStream::connect(peer).await.map_err(|source| match source.kind() {
        std::io::ErrorKind::ConnectionRefused => Error::Closed { port },
        _ => Error::Connect { source },
    })
}

/// Runs a connection until it is closed, or until the end of [`LIFE`]. An error of the connection
/// also ends the request, which reports it.
async fn limited(connection: impl Future<Output = hyper::Result<()>>) {
    let _ = timeout(LIFE, connection).await;
}
