//! One HTTP/1.1 connection to a management engine.

use std::time::Duration;

use bytes::Bytes;
use http::header::{
    AUTHORIZATION, CONNECTION, CONTENT_TYPE, HOST, HeaderMap, SERVER, USER_AGENT, WWW_AUTHENTICATE,
};
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use super::{Endpoint, Security};
use crate::{Error, Fingerprint, tls};

/// Path of WS-Management on the server.
pub const PATH: &str = "/wsman";
/// Maximum time of one connection attempt, with TLS. A management engine of a machine that is off
/// needs seconds to wake up.
const CONNECT_LIMIT: Duration = Duration::from_secs(6);
/// Connection attempts, because an engine that wakes up drops the first packets.
const CONNECT_ATTEMPTS: u32 = 2;
/// Wait between two attempts.
const CONNECT_PAUSE: Duration = Duration::from_millis(500);
/// Time after which a connection is not used again. AMT closes idle connections.
const IDLE_LIMIT: Duration = Duration::from_secs(10);
/// Age after which a connection is not used again.
const REUSE_LIMIT: Duration = Duration::from_secs(30);
/// Age at which a connection is closed; longer than [`REUSE_LIMIT`] and one turn together.
const LIFE: Duration = Duration::from_secs(90);
/// Maximum size of an answer, in bytes. A page of 390 log records has about 20 KiB.
const BODY_BYTES_MAX: usize = 1 << 20;
/// Maximum size of the head of an answer, in bytes.
const HEAD_BYTES_MAX: usize = 16 << 10;

/// HTTP answer, of any status.
#[derive(Debug)]
pub struct HttpAnswer {
    pub status: StatusCode,
    /// Values of the headers `WWW-Authenticate`.
    pub challenges: Vec<String>,
    /// Header `Server`, which names the version of AMT.
    pub server: Option<String>,
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
    /// True after the first answer.
    pub has_answered: bool,
    /// Certificate of the machine; `None` without TLS.
    pub certificate: Option<Fingerprint>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Connection {
    /// Connects to the machine. `pin` is the expected certificate.
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
        let port = endpoint.port();
        let stream = connect(endpoint, port).await?;
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
                let (stream, certificate) = tls::start(stream, pin).await?;
                let io = TokioIo::new(stream);
                let (sender, connection) = builder.handshake(io).await.map_err(broken)?;
                (sender, tokio::spawn(limited(connection)), Some(certificate))
            }
        };
        let host = match endpoint.host.contains(':') {
            true => format!("[{}]:{port}", endpoint.host),
            false => format!("{}:{port}", endpoint.host),
        };
        let (opened, used) = (Instant::now(), Instant::now());
        Ok(Self { sender, task, host, opened, used, has_answered: false, certificate })
    }

    /// Returns true if another request may use the connection.
    pub fn is_fresh(&self) -> bool {
        !self.sender.is_closed()
            && self.used.elapsed() < IDLE_LIMIT
            && self.opened.elapsed() < REUSE_LIMIT
    }

    /// Sends one request and reads the whole answer. The flag of the result is true if the
    /// connection stays open.
    pub async fn post(
        &mut self,
        authorization: Option<&str>,
        body: String,
    ) -> Result<(HttpAnswer, bool), SendFailure> {
        self.sender.ready().await.map_err(|_| SendFailure::NotSent)?;
        let mut request = Request::post(PATH)
            .header(HOST, &self.host)
            .header(USER_AGENT, "tinbox")
            .header(CONTENT_TYPE, "application/soap+xml;charset=UTF-8");
        if let Some(authorization) = authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        let request = request.body(Full::from(body));
        let request = request.map_err(|_| SendFailure::NotSent)?;
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
        let challenges = head.headers.get_all(WWW_AUTHENTICATE).iter();
        let challenges = challenges.filter_map(|value| value.to_str().ok().map(str::to_owned));
        let answer = HttpAnswer {
            status: head.status,
            challenges: challenges.collect(),
            server: text(&head.headers, &SERVER),
            body,
        };
        Ok((answer, stays_open))
    }
}

fn text(headers: &HeaderMap, name: &http::HeaderName) -> Option<String> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
}

/// Connects to a TCP port of the machine.
pub async fn connect(endpoint: &Endpoint, port: u16) -> Result<TcpStream, Error> {
    let found = resolver::system().lookup(&endpoint.host, port).await;
    let found = found.map_err(|error| Error::Resolve { source: Some(error) })?;
    let peer = *found.first().ok_or(Error::Resolve { source: None })?;
    let is_plain = matches!(endpoint.security, Security::Plain);
    TcpStream::connect(peer).await.map_err(|source| match source.kind() {
        std::io::ErrorKind::ConnectionRefused => Error::Closed { port, is_plain },
        _ => Error::Connect { source },
    })
}

/// Runs a connection until it is closed, or until the end of [`LIFE`]. An error of the connection
/// also ends the request, which reports it.
async fn limited(connection: impl Future<Output = hyper::Result<()>>) {
    let _ = timeout(LIFE, connection).await;
}
