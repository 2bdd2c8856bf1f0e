//! Tests clients that exceed their limits.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::DefaultBodyLimit;
use axum::routing::{get, post};
use axum::{Extension, Router};
use http_edge::{Limits, Proof};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use super::{Server, ask, server};
use crate::http::{HttpService, serve};

async fn listening(server: &Server, service: HttpService) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(serve(listener, service, server.shutdown.clone()));
    address
}

/// Opens a connection of a machine that sends no request.
async fn silent(machine: u8, to: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((Ipv4Addr::new(127, 0, 0, machine), 0).into()).unwrap();
    socket.connect(to).await.unwrap()
}

/// Waits until the server has closed a connection.
async fn ended(stream: &mut TcpStream) {
    assert!(matches!(stream.read(&mut [0]).await, Ok(0) | Err(_)));
}

#[tokio::test]
async fn machines_with_many_connections_keep_no_other_out() {
    let server = server().await;
    let connections = Limits { total: 6, each: 3 };
    let to = listening(&server, HttpService { connections, ..server.service.clone() }).await;
    let mut held = Vec::new();
    for machine in [2, 2, 2, 3, 3, 3] {
        held.push(silent(machine, to).await);
    }
    // A further connection of a machine that has three ends its oldest one.
    held.push(silent(2, to).await);
    ended(&mut held[0]).await;
    // A new machine is served; its connection ends the oldest one of a machine with most.
    let answer = ask(to, "GET", "/agent/vmlinuz-x86_64", "").await;
    assert_eq!((answer.status, &answer.body[..]), (200, &b"kernel"[..]));
    ended(&mut held[3]).await;
}

#[tokio::test]
async fn a_stranger_cannot_have_much_held_or_for_long() {
    let server = server().await;
    let echo = Router::new()
        .route("/x", post(async |body: Bytes| body.len().to_string()))
        .layer(DefaultBodyLimit::disable());
    let to = listening(&server, HttpService::from(echo).for_unknown_clients()).await;
    let status = async |length: usize, sent: usize| {
        let mut stream = TcpStream::connect(to).await.unwrap();
        let head = format!("POST /x HTTP/1.1\r\nhost: box\r\ncontent-length: {length}\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        // The server may close the connection before it has received the whole body.
        let _ = stream.write_all(&vec![0; sent]).await;
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).await.unwrap();
        String::from_utf8_lossy(&answer[9..]).into_owned()
    };
    assert_eq!(status(1 << 20, 1 << 20).await, "200");
    assert_eq!(status(3 << 20, 3 << 20).await, "400");
    let begun = std::time::Instant::now();
    assert_eq!(status(1 << 20, 1).await, "400");
    assert!(begun.elapsed() >= Duration::from_secs(10));
}

#[tokio::test]
async fn a_client_that_does_not_show_that_it_is_known_is_let_go() {
    let server = server().await;
    let token = Router::new()
        .route("/good", get(async |Extension(proof): Extension<Proof>| proof.show()))
        .route("/bad", get(async || ()));
    let proof = Some(Duration::from_millis(500));
    let to = listening(&server, HttpService { proof, ..HttpService::from(token) }).await;
    let asks = async |stream: &mut TcpStream, path: &str| {
        let head = format!("GET {path} HTTP/1.1\r\nhost: box\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"HTTP/1.1 200");
        while !answer.ends_with(b"\r\n\r\n") {
            answer.rotate_left(1);
            answer[11] = stream.read_u8().await.unwrap();
        }
    };
    let mut known = silent(2, to).await;
    asks(&mut known, "/good").await;
    let (mut silent_one, mut unknown) = (silent(3, to).await, silent(3, to).await);
    asks(&mut unknown, "/bad").await;
    // Both connections began later than the one with a proof.
    ended(&mut silent_one).await;
    ended(&mut unknown).await;
    asks(&mut known, "/bad").await;
}
