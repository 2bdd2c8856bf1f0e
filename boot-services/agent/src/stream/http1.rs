//! One GET on one HTTP/1.1 connection.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use http::header::{self, HeaderMap};
use http::{Request, Response};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use super::Url;
use crate::Error;

/// Longest wait for a connection, and again for the answer's head.
const ANSWER: Duration = Duration::from_secs(15);
/// The connection's read buffer, hence the longest piece.
pub(super) const READ_BUFFER: usize = 256 << 10;
/// Longest wait for what a server says about its failure, and the most that is read of it.
const SENTENCE: Duration = Duration::from_secs(2);
const SENTENCE_BYTES: usize = 2000;
/// Redirects followed in a row.
const REDIRECTS: usize = 5;

/// An answer whose body is still to be read; the connection closes with it.
pub(super) struct Answer {
    pub(super) response: Response<Incoming>,
    _connection: Connection,
}

struct Connection(JoinHandle<()>);

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Why there is no answer.
pub(super) enum Failure {
    /// Worth another attempt.
    Transient(String),
    /// Not worth one.
    Fatal(Error),
}

/// GET `url`, following redirects.
pub(super) async fn get(url: &Url, fields: &HeaderMap) -> Result<Answer, Failure> {
    let mut url = url.clone();
    for _ in 0..=REDIRECTS {
        let answer = tokio::time::timeout(ANSWER, once(&url, fields))
            .await
            .map_err(|_| Failure::Transient(format!("no answer within {} s", ANSWER.as_secs())))?
            .map_err(Failure::Transient)?;
        if !answer.response.status().is_redirection() {
            return Ok(answer);
        }
        let location = answer.response.headers().get(header::LOCATION);
        let Some(location) = location.and_then(|value| value.to_str().ok()) else {
            return Ok(answer);
        };
        url = url.join(location).map_err(Failure::Fatal)?;
    }
    let reason = format!("it leads through more than {REDIRECTS} redirects");
    Err(Failure::Fatal(Error::Url { url: url.to_string(), reason }))
}

/// What a server says of its refusal, as `: <line>`, in plain text or as registries do: a box that
/// could not fetch something for us says why.
pub(super) async fn sentence(response: &mut Response<Incoming>) -> String {
    let kind = response.headers().get(header::CONTENT_TYPE).map(|kind| kind.as_bytes().to_vec());
    let is = |wanted: &[u8]| kind.as_ref().is_some_and(|kind| kind.starts_with(wanted));
    let (is_plain, is_json) = (is(b"text/plain"), is(b"application/json"));
    if !(is_plain || is_json) || response.status().is_success() {
        return String::new();
    }
    let frame = tokio::time::timeout(SENTENCE, response.frame()).await;
    let bytes = frame.ok().flatten().and_then(Result::ok).and_then(|it| it.into_data().ok());
    let bytes = bytes.unwrap_or_default();
    let bytes = &bytes[..bytes.len().min(SENTENCE_BYTES)];
    let text = if is_json { message(bytes) } else { String::from_utf8_lossy(bytes).into_owned() };
    let line = text.lines().next().unwrap_or_default();
    let line: String = line.chars().filter(|c| !c.is_control()).collect();
    if line.is_empty() { line } else { format!(": {line}") }
}

/// The first message in a registry's answer (OCI distribution specification, "Error Codes").
fn message(bytes: &[u8]) -> String {
    #[derive(serde::Deserialize)]
    struct Failure {
        errors: Vec<Message>,
    }
    #[derive(serde::Deserialize)]
    struct Message {
        message: String,
    }
    let failure = serde_json::from_slice::<Failure>(bytes).ok();
    let message = failure.and_then(|failure| failure.errors.into_iter().next());
    message.map(|it| it.message).unwrap_or_default()
}

async fn once(url: &Url, fields: &HeaderMap) -> Result<Answer, String> {
    let stream = TcpStream::connect(url.address())
        .await
        .map_err(|error| format!("cannot connect to {}: {error}", url.address()))?;
    let (mut sender, connection) = hyper::client::conn::http1::Builder::new()
        .max_buf_size(READ_BUFFER)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(|error| stdx::chain(&error))?;
    let connection = Connection(tokio::spawn(async move {
        // Its failure reaches the reader of the body.
        let _ = connection.await;
    }));
    let response = sender.send_request(request(url, fields)?).await;
    let response = response.map_err(|error| stdx::chain(&error))?;
    Ok(Answer { response, _connection: connection })
}

fn request(url: &Url, fields: &HeaderMap) -> Result<Request<Empty<Bytes>>, String> {
    let mut request = Request::get(url.target())
        .header(header::HOST, url.host_field())
        .header(header::USER_AGENT, concat!("tinbox-agent/", env!("CARGO_PKG_VERSION")))
        .body(Empty::new())
        .map_err(|error| io::Error::other(error).to_string())?;
    request.headers_mut().extend(fields.clone());
    Ok(request)
}
