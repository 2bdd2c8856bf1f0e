//! Watches over WebSocket, one text frame per event (apiserver `pkg/endpoints/handlers/watch.go`,
//! `HandleWS`). Clients based on fabric8 use WebSockets first.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use http::header::{
    CONNECTION, HOST, ORIGIN, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL,
    SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, ReadHalf, WriteHalf};
use tokio::time::{Instant, timeout};

use super::frame::{self, Opcode, Received, Violation};
use super::{Feed, LAST_CALL, STALL_TIMEOUT};
use crate::filters::{Peer, Seat};
use resources::{Reason, StatusError};

/// Maximum wait for the upgrade of the connection to a WebSocket.
const UPGRADE_TIMEOUT: Duration = Duration::from_secs(10);
/// Time without progress of the client after which the watch frees events that were read ahead.
const REST_AFTER: Duration = Duration::from_secs(1);
/// Maximum bytes of one read from a client.
const READ_BYTES: usize = 1024;

/// Request of a client to switch to a WebSocket.
pub struct Handshake {
    connection: OnUpgrade,
    peer: Arc<Peer>,
    accept: HeaderValue,
    protocol: Option<HeaderValue>,
}

impl Handshake {
    /// Reads the handshake from a request; `None` for a request without an upgrade to WebSocket.
    ///
    /// # Errors
    /// 400 for a handshake that violates RFC 6455. 403 for a handshake from a web page of another
    /// server, because a browser sends the user's certificate also for such a page.
    pub fn of(request: &mut Request) -> Result<Option<Self>, StatusError> {
        let headers = request.headers();
        if !has_word(headers, UPGRADE, "websocket") || !has_word(headers, CONNECTION, "upgrade") {
            return Ok(None);
        }
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let bad =
            |why: String| StatusError::bad_request(format!("cannot begin a WebSocket: {why}"));
        let version = text(SEC_WEBSOCKET_VERSION).unwrap_or_default();
        if version != "13" {
            let why = format!("expected Sec-WebSocket-Version 13, found {version:?}");
            return Err(bad(why));
        }
        let accept = text(SEC_WEBSOCKET_KEY).and_then(frame::accept);
        let accept = accept.and_then(|accept| HeaderValue::try_from(accept).ok());
        let accept = accept
            .ok_or_else(|| bad("expected a Sec-WebSocket-Key of 16 bytes in base64".to_owned()))?;
        if let Some(origin) = text(ORIGIN)
            && !is_same_server(origin, text(HOST).unwrap_or_default())
        {
            let why = format!("origin {origin:?} is not this server");
            return Err(StatusError::new(Reason::Forbidden, format!("WebSocket refused: {why}")));
        }
        // A client that offers one protocol expects it in the response; the box defines no
        // protocol.
        let protocol = headers.get(SEC_WEBSOCKET_PROTOCOL).cloned();
        let protocol = protocol.filter(|one| !one.as_bytes().contains(&b','));
        let extensions = request.extensions_mut();
        let connection = extensions.remove::<OnUpgrade>();
        let peer = extensions.get::<Arc<Peer>>().map(Arc::clone);
        let (Some(connection), Some(peer)) = (connection, peer) else { return Ok(None) };
        Ok(Some(Self { connection, peer, accept, protocol }))
    }

    /// Returns the response 101; after the response, `feed` sends its events over the connection.
    pub(super) fn respond(self, feed: Feed) -> Response {
        let seat = Seat::default();
        let (connection, held) = (self.connection, seat.clone());
        self.peer.go_on_as(async move {
            if let Ok(Ok(upgraded)) = timeout(UPGRADE_TIMEOUT, connection).await {
                let (reader, writer) = tokio::io::split(TokioIo::new(upgraded));
                Socket { feed, reader, writer, received: Vec::new() }.run().await;
            }
            drop(held);
        });
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = response.headers_mut();
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(SEC_WEBSOCKET_ACCEPT, self.accept);
        if let Some(protocol) = self.protocol {
            headers.insert(SEC_WEBSOCKET_PROTOCOL, protocol);
        }
        response.extensions_mut().insert(seat);
        response
    }
}

/// Returns true if the comma-separated list in the header `name` contains `word`.
fn has_word(headers: &HeaderMap, name: HeaderName, word: &str) -> bool {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|one| one.trim().eq_ignore_ascii_case(word))
}

/// Returns true if the header `Origin` names the server `host`, with or without port 443.
fn is_same_server(origin: &str, host: &str) -> bool {
    let without_port = |of: &str| of.strip_suffix(":443").unwrap_or(of).to_ascii_lowercase();
    origin.strip_prefix("https://").is_some_and(|from| without_port(from) == without_port(host))
}

type Io = TokioIo<Upgraded>;

struct Socket {
    feed: Feed,
    reader: ReadHalf<Io>,
    writer: WriteHalf<Io>,
    /// Bytes from the client that do not yet form a complete frame.
    received: Vec<u8>,
}

impl Socket {
    /// Sends events until the watch ends, or the client closes or disconnects.
    async fn run(mut self) {
        let code = self.events().await;
        if let Some(code) = code {
            let close = frame::frame(Opcode::Close, &code.to_be_bytes());
            self.send(&close, true).await;
            drop(timeout(LAST_CALL, self.writer.shutdown()).await);
        }
    }

    /// Sends the events. Returns the close code to send; `None` if the client does not read.
    async fn events(&mut self) -> Option<u16> {
        loop {
            let mut bytes = [0; READ_BYTES];
            tokio::select! {
                line = self.feed.next() => {
                    let Some(line) = line else { return Some(frame::NORMAL) };
                    let text = line.text.strip_suffix(b"\n").unwrap_or(&line.text);
                    let event = frame::frame(Opcode::Text, text);
                    if !self.send(&event, line.held.is_some()).await {
                        return None;
                    }
                }
                read = self.reader.read(&mut bytes) => match read {
                    Ok(length @ 1..) => {
                        self.received.extend_from_slice(&bytes[..length]);
                        if let Err(code) = self.answer().await {
                            return code;
                        }
                    }
                    _ => return None,
                }
            }
        }
    }

    /// Processes received frames. The error ends the watch, with the close code to send.
    async fn answer(&mut self) -> Result<(), Option<u16>> {
        loop {
            match frame::parse(&self.received) {
                Ok(None) => return Ok(()),
                Err(Violation(code)) => return Err(Some(code)),
                Ok(Some((received, length))) => {
                    self.received.drain(..length);
                    match received {
                        Received::Close => return Err(Some(frame::NORMAL)),
                        Received::Ping(bytes) => {
                            if !self.send(&frame::frame(Opcode::Pong, &bytes), true).await {
                                return Err(None);
                            }
                        }
                        Received::Other => {}
                    }
                }
            }
        }
    }

    /// Writes a frame. Returns false if the client disconnected, reads nothing of a `counted` frame
    /// for [`STALL_TIMEOUT`], or reads nothing after the watch's end.
    async fn send(&mut self, frame: &[u8], counted: bool) -> bool {
        let (mut rest, mut waited) = (frame, Duration::ZERO);
        while !rest.is_empty() {
            match timeout(REST_AFTER, self.writer.write(rest)).await {
                Ok(Ok(length @ 1..)) => {
                    rest = rest.get(length..).unwrap_or_default();
                    waited = Duration::ZERO;
                }
                Ok(_) => return false,
                Err(_) => {
                    self.feed.rest();
                    waited += REST_AFTER;
                    let stalled = counted && waited >= STALL_TIMEOUT;
                    if stalled || Instant::now() >= self.feed.ends + LAST_CALL {
                        return false;
                    }
                }
            }
        }
        matches!(timeout(STALL_TIMEOUT, self.writer.flush()).await, Ok(Ok(())))
    }
}

#[cfg(test)]
mod tests {
    use super::is_same_server;

    #[test]
    fn pages_of_other_servers_open_no_watch() {
        for (origin, host, same) in [
            ("https://box:6443", "box:6443", true),
            ("https://Box", "box:443", true),
            ("https://[fd00::1]:6443", "[fd00::1]:6443", true),
            ("http://box:6443", "box:6443", false),
            ("https://evil.example", "box:6443", false),
            ("https://box:6443.evil.example", "box:6443", false),
            ("null", "box", false),
        ] {
            assert_eq!(is_same_server(origin, host), same, "{origin} {host}");
        }
    }
}
