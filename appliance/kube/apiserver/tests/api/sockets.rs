//! Tests of watches over WebSocket, which clients based on fabric8 request first.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use crate::requests::{Client, HARDWARE, secure};
use crate::server::{PATIENCE, Server};

const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";

struct Socket(TlsStream<TcpStream>);

impl Socket {
    /// Requests a watch as a WebSocket; also returns the head of the response.
    async fn open(server: &Server, query: &str, more: &str) -> (Self, String) {
        let mut stream = secure(server, None, &[]).await;
        let token = &server.token;
        let request = format!(
            "GET {HARDWARE}?watch=true{query} HTTP/1.1\r\nHost: box:6443\r\n\
             Authorization: Bearer {token}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {KEY}\r\n{more}\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut head = Vec::new();
        let read = async {
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.unwrap());
            }
        };
        tokio::time::timeout(PATIENCE, read).await.unwrap();
        (Self(stream), String::from_utf8(head).unwrap())
    }

    /// Returns the next frame: its first byte and its payload.
    async fn frame(&mut self) -> (u8, Vec<u8>) {
        let read = async {
            let first = self.0.read_u8().await.unwrap();
            let length = match self.0.read_u8().await.unwrap() {
                126 => usize::from(self.0.read_u16().await.unwrap()),
                short @ 0..=125 => usize::from(short),
                other => panic!("{other}"),
            };
            let mut payload = vec![0; length];
            self.0.read_exact(&mut payload).await.unwrap();
            (first, payload)
        };
        tokio::time::timeout(PATIENCE, read).await.unwrap()
    }

    async fn event(&mut self) -> Value {
        let (first, text) = self.frame().await;
        assert_eq!(first, 0x81);
        serde_json::from_slice(&text).unwrap()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_as_a_websocket_sends_one_event_a_frame() {
    let server = Server::start().await;
    let mut client = Client::connect(&server).await;
    let first = client.create("a").await;
    let origin = "Origin: https://box:6443\r\n";
    let (mut socket, head) = Socket::open(&server, "", origin).await;
    assert!(head.starts_with("HTTP/1.1 101 Switching Protocols\r\n"), "{head}");
    let head = head.to_lowercase();
    assert!(head.contains("upgrade: websocket\r\n"), "{head}");
    let accept = "sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo=\r\n";
    assert!(head.contains(accept), "{head}");
    assert_eq!(socket.event().await, json!({ "type": "ADDED", "object": first }));
    // Changes arrive while the WebSocket is open, and pings are answered.
    let second = client.create("b").await;
    assert_eq!(socket.event().await, json!({ "type": "ADDED", "object": second }));
    socket.0.write_all(&[0x89, 0x82, 0, 0, 0, 0, b'h', b'i']).await.unwrap();
    assert_eq!(socket.frame().await, (0x8a, b"hi".to_vec()));
    socket.0.write_all(&[0x88, 0x80, 0, 0, 0, 0]).await.unwrap();
    assert_eq!(socket.frame().await, (0x88, 1000_u16.to_be_bytes().to_vec()));
    // A watch with a timeout ends at that time.
    let (mut socket, _) = Socket::open(&server, "&timeoutSeconds=1", "").await;
    socket.event().await;
    socket.event().await;
    assert_eq!(socket.frame().await.0, 0x88);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_websocket_that_is_refused_is_answered_and_ends() {
    let server = Server::start().await;
    let (_, head) = Socket::open(&server, "", "Origin: https://evil.example\r\n").await;
    assert!(head.starts_with("HTTP/1.1 403 "), "{head}");
    let (_, head) = Socket::open(&server, "&resourceVersion=99999", "").await;
    assert!(head.starts_with("HTTP/1.1 504 "), "{head}");
    assert!(head.to_lowercase().contains("content-length:"), "{head}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_stops_ends_its_websockets() {
    let server = Server::start().await;
    let (mut socket, head) = Socket::open(&server, "", "").await;
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    server.stop().await;
    let ended = tokio::time::timeout(PATIENCE, socket.0.read(&mut [0; 64])).await.unwrap();
    assert!(matches!(ended, Ok(0) | Err(_)));
}
