//! HTTP/1.1 client: one GET request per connection; the body is read without a copy.

mod body;
pub(super) mod connection;
pub(super) mod holes;
pub(super) mod validator;

use std::time::Duration;

use bytes::Buf as _;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Response, StatusCode};
use tokio::io::AsyncWriteExt as _;

use super::Url;
use crate::Error;
use body::{Body, Framing};
use connection::{Connection, NoConnection, connect};

/// Maximum wait for the connection and the response head.
const ANSWER: Duration = Duration::from_secs(15);
/// Maximum length of a response head in bytes, and maximum number of its fields.
const HEAD: usize = 64 << 10;
const FIELDS: usize = 100;
/// Maximum wait for the text of an error response, and its maximum length in bytes.
const SENTENCE: Duration = Duration::from_secs(2);
const SENTENCE_BYTES: usize = 2000;
/// Maximum number of consecutive redirects.
const MAX_REDIRECTS: usize = 10;
/// Redirect statuses (RFC 9110 section 15.4). 304 and 305 do not redirect.
const REDIRECTS: [StatusCode; 6] = [
    StatusCode::MULTIPLE_CHOICES,
    StatusCode::MOVED_PERMANENTLY,
    StatusCode::FOUND,
    StatusCode::SEE_OTHER,
    StatusCode::TEMPORARY_REDIRECT,
    StatusCode::PERMANENT_REDIRECT,
];

/// Response with an unread body. The drop closes the connection.
pub(super) struct Answer {
    /// Status and header fields of the response.
    pub(super) head: Response<()>,
    body: Body<Connection>,
}

/// Failure of a request or of a response.
pub(super) enum Failure {
    /// Temporary failure: another attempt may succeed.
    Transient(String),
    /// Permanent failure: another attempt would fail too.
    Fatal(Error),
}

impl From<String> for Failure {
    fn from(reason: String) -> Self {
        Self::Transient(reason)
    }
}

/// Sends GET for `url`, and follows up to [`MAX_REDIRECTS`] redirects.
pub(super) async fn get(url: &Url, fields: &HeaderMap) -> Result<Answer, Failure> {
    let mut url = url.clone();
    for _ in 0..=MAX_REDIRECTS {
        let answer = tokio::time::timeout(ANSWER, once(&url, fields)).await.map_err(|_| {
            Failure::Transient(format!("no response within {} s", ANSWER.as_secs()))
        })??;
        if !REDIRECTS.contains(&answer.head.status()) {
            return Ok(answer);
        }
        let Some(location) = answer.head.headers().get(header::LOCATION) else {
            return Ok(answer);
        };
        url = url.join(location.as_bytes()).map_err(Failure::Fatal)?;
    }
    let reason = format!("it has more than {MAX_REDIRECTS} redirects");
    Err(Failure::Fatal(Error::Url { url: url.to_string(), reason }))
}

impl Answer {
    /// Reads available bytes of the body into `out`, which must not be empty. Returns their number;
    /// 0 at the end of the body. Fails if the body is cut, or if no byte arrives within `stall`.
    pub(super) async fn read(&mut self, out: &mut [u8], stall: Duration) -> Result<usize, Failure> {
        match tokio::time::timeout(stall, self.body.read(out)).await {
            Ok(read) => read.map_err(Failure::Transient),
            Err(_) => Err(Failure::Transient(format!("no data for {} s", stall.as_secs()))),
        }
    }

    /// Returns the text of an error response as `: <first line>`, from plain text or a registry's
    /// JSON; empty without text. A box states there why it could not fetch a file.
    pub(super) async fn sentence(&mut self) -> String {
        let kind = self.head.headers().get(header::CONTENT_TYPE);
        let is = |wanted: &[u8]| kind.is_some_and(|kind| kind.as_bytes().starts_with(wanted));
        let (is_plain, is_json) = (is(b"text/plain"), is(b"application/json"));
        if !(is_plain || is_json) || self.head.status().is_success() {
            return String::new();
        }
        let bytes = tokio::time::timeout(SENTENCE, self.start()).await.unwrap_or_default();
        let line = if is_json { message(&bytes) } else { String::from_utf8_lossy(&bytes).into() };
        let line = line.lines().next().unwrap_or_default();
        let line: String = line.chars().filter(|c| !c.is_control()).collect();
        if line.is_empty() { line } else { format!(": {line}") }
    }

    /// Reads the first bytes of the body, at most [`SENTENCE_BYTES`].
    async fn start(&mut self) -> Vec<u8> {
        let (mut bytes, mut filled) = (vec![0; SENTENCE_BYTES], 0);
        while filled < bytes.len() {
            match self.body.read(&mut bytes[filled..]).await {
                Ok(count) if count > 0 => filled += count,
                _ => break,
            }
        }
        bytes.truncate(filled);
        bytes
    }
}

/// Returns the first message of a registry's error response (OCI distribution specification, "Error
/// Codes"); empty without one.
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

async fn once(url: &Url, fields: &HeaderMap) -> Result<Answer, Failure> {
    let mut stream = connect(url).await.map_err(|failure| match failure {
        NoConnection::Passing(reason) => Failure::Transient(reason),
        NoConnection::Lasting(reason) => {
            Failure::Fatal(Error::Url { url: url.to_string(), reason })
        }
    })?;
    let sent = async {
        stream.write_all(&request(url, fields)).await?;
        // TLS may buffer the written bytes.
        stream.flush().await
    };
    let sent = sent.await;
    sent.map_err(|error| format!("cannot send a request to {}: {error}", url.address()))?;
    let mut body = Body::new(stream);
    loop {
        if let Some((head, length)) = parse(body.ahead())? {
            body.ahead().advance(length);
            // The final response follows an interim response (RFC 9110 section 15.2).
            if head.status().is_informational() {
                continue;
            }
            let empty = matches!(head.status(), StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
            let framing = if empty { Framing::Length(0) } else { Framing::of(head.headers())? };
            body.begin(framing);
            return Ok(Answer { head, body });
        }
        if body.ahead().len() >= HEAD {
            let most = stdx::bytes(HEAD as u64);
            return Err(format!("the response head has more than {most}").into());
        }
        if body.look_ahead().await.map_err(|error| error.to_string())? == 0 {
            return Err("the connection ended before a response".to_owned().into());
        }
    }
}

/// Builds the text of a GET request with `connection: close`.
fn request(url: &Url, fields: &HeaderMap) -> Vec<u8> {
    let agent = concat!("tinbox-agent/", env!("CARGO_PKG_VERSION"));
    let (target, host) = (url.target(), url.host_field());
    let mut text = format!(
        "GET {target} HTTP/1.1\r\nhost: {host}\r\nuser-agent: {agent}\r\nconnection: close\r\n"
    )
    .into_bytes();
    for (name, value) in fields {
        text.extend_from_slice(name.as_str().as_bytes());
        text.extend_from_slice(b": ");
        text.extend_from_slice(value.as_bytes());
        text.extend_from_slice(b"\r\n");
    }
    text.extend_from_slice(b"\r\n");
    text
}

/// Parses a response head. Returns head and length; `None` if the head is incomplete.
fn parse(bytes: &[u8]) -> Result<Option<(Response<()>, usize)>, String> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS];
    let mut parsed = httparse::Response::new(&mut fields);
    let broken = |reason: &dyn std::fmt::Display| format!("the response is not HTTP: {reason}");
    let length = match parsed.parse(bytes).map_err(|error| broken(&error))? {
        httparse::Status::Partial => return Ok(None),
        httparse::Status::Complete(length) => length,
    };
    let mut head = Response::new(());
    let code = parsed.code.unwrap_or_default();
    *head.status_mut() = StatusCode::from_u16(code).map_err(|error| broken(&error))?;
    for field in parsed.headers.iter() {
        let name = HeaderName::from_bytes(field.name.as_bytes());
        let value = HeaderValue::from_bytes(field.value).map_err(|error| broken(&error))?;
        head.headers_mut().append(name.map_err(|error| broken(&error))?, value);
    }
    Ok(Some((head, length)))
}

#[cfg(test)]
mod tests {
    use http::header::{HeaderMap, HeaderValue, RANGE};

    use super::{FIELDS, parse, request};

    #[test]
    fn a_request_asks_for_one_thing() {
        let url = "http://box:7173/a%20b?c=d".parse().unwrap();
        let mut fields = HeaderMap::new();
        fields.insert(RANGE, HeaderValue::from_static("bytes=7-"));
        let text = String::from_utf8(request(&url, &fields)).unwrap();
        let lines: Vec<_> = text.split("\r\n").collect();
        assert_eq!(lines[0], "GET /a%20b?c=d HTTP/1.1");
        assert_eq!(lines[1], "host: box:7173");
        assert!(lines[2].starts_with("user-agent: tinbox-agent/"), "{text}");
        assert_eq!(lines[3..], ["connection: close", "range: bytes=7-", "", ""]);
    }

    #[test]
    fn a_head_is_read_once_it_is_whole() {
        let text = b"HTTP/1.1 206 Partial Content\r\nETag: \"a\"\r\nX: 1\r\nX: 2\r\n\r\nbody";
        let whole = text.len() - b"body".len();
        for cut in 0..whole {
            assert!(parse(&text[..cut]).unwrap().is_none(), "cut at {cut}");
        }
        let (head, length) = parse(text).unwrap().unwrap();
        assert_eq!((head.status().as_u16(), length), (206, whole));
        assert_eq!(head.headers().get("etag").unwrap(), "\"a\"");
        assert_eq!(head.headers().get_all("x").iter().count(), 2);
        for broken in ["SSH-2.0-OpenSSH\r\n", "HTTP/1.1 000 No\r\n\r\n", "HTTP/1.1 2x\r\n\r\n"] {
            assert!(parse(broken.as_bytes()).is_err(), "{broken}");
        }
        let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(FIELDS + 1));
        let error = parse(many.as_bytes()).unwrap_err();
        assert!(error.starts_with("the response is not HTTP: "), "{error}");
    }
}
