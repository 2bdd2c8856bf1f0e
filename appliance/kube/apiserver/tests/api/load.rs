//! Tests that a client with many or slow requests does not block other clients.

use std::convert::Infallible;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Empty, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustix::time::{ClockId, clock_gettime};
use tokio::io::AsyncReadExt as _;
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;

use crate::requests::{Client, secure};
use crate::server::{PATIENCE, Server};

pub const HARDWARE: &str = "/apis/tinkerbell.org/v1alpha1/namespaces/default/hardware";
/// Number of unauthenticated connections, from four addresses.
const STRANGERS_MANY: usize = 560;
/// Number of watches on one connection.
const EACH: usize = 100;

pub type Body = http_body_util::combinators::UnsyncBoxBody<Bytes, Infallible>;

pub async fn connect(server: &Server) -> SendRequest<Body> {
    let stream = TokioIo::new(secure(server, None, &[b"h2"]).await);
    let (sender, connection) = http2::handshake(TokioExecutor::new(), stream).await.unwrap();
    tokio::spawn(connection);
    sender
}

pub async fn send(
    sender: &SendRequest<Body>,
    (method, path, token): (&str, &str, &str),
    body: Body,
) -> http::Response<Incoming> {
    let mut sender = sender.clone();
    let request = Request::builder()
        .method(method)
        .uri(format!("https://box{path}"))
        .header("authorization", format!("Bearer {token}"))
        .header("content-type", "application/json")
        .body(body)
        .unwrap();
    sender.ready().await.unwrap();
    tokio::time::timeout(PATIENCE, sender.send_request(request)).await.expect("an answer").unwrap()
}

pub fn empty() -> Body {
    Empty::new().boxed_unsync()
}

pub async fn account(server: &Server, name: &str) -> String {
    let mut admin = Client::connect(server).await;
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    let bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    let binding = serde_json::json!({
        "metadata": { "name": name },
        "roleRef": { "kind": "ClusterRole", "name": "tinbox:operator" },
        "subjects": [{ "kind": "ServiceAccount", "name": name, "namespace": "default" }],
    });
    let object = serde_json::json!({ "metadata": { "name": name } });
    for (path, body) in [(accounts, object), (bindings, binding)] {
        let (code, answer) = admin.json("POST", path, &[], body.to_string()).await;
        assert_eq!(code, 201, "{answer}");
    }
    let (_, answer) = admin.json("POST", &format!("{accounts}/{name}/token"), &[], "{}").await;
    answer["status"]["token"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_with_its_share_taken_is_told_to_wait_and_others_are_not() {
    const TOO_MANY: usize = 10;
    let server = Server::start().await;
    let greedy = account(&server, "greedy").await;
    let modest = account(&server, "modest").await;
    // Two connections, because a client library may open at most 100 requests on one.
    let connections = [connect(&server).await, connect(&server).await];
    let mut stalled = JoinSet::new();
    for (_, connection) in
        (0..apiserver::WRITES.each + TOO_MANY).zip(connections.iter().cycle().cloned())
    {
        let token = greedy.clone();
        stalled.spawn(async move {
            let never = futures_util::stream::pending::<Result<Frame<Bytes>, Infallible>>();
            let body = StreamBody::new(never).boxed_unsync();
            send(&connection, ("POST", HARDWARE, &token), body).await
        });
    }
    for _ in 0..TOO_MANY {
        let answer = stalled.join_next().await.expect("those beyond the share").unwrap();
        assert_eq!(answer.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(answer.headers()["retry-after"], "1");
    }
    let object = r#"{"metadata":{"name":"m"}}"#;
    let body = Full::new(Bytes::from_static(object.as_bytes())).boxed_unsync();
    let other = connect(&server).await;
    let answer = send(&other, ("POST", HARDWARE, &modest), body).await;
    assert_eq!(answer.status(), 201, "another client writes");
    let answer = send(&connections[0], ("GET", HARDWARE, &greedy), empty()).await;
    assert_eq!(answer.status(), 200, "the greedy one still reads");
    // No other request waited for the end of a stalled request.
    assert!(stalled.try_join_next().is_none(), "those within the share are served");
    stalled.shutdown().await;
    server.stop().await;
}

/// Opened watches, each with its connection.
type Watches = Vec<(Incoming, SendRequest<Body>)>;

/// Opens as many watches as one connection may have.
async fn watch(server: &Server, token: &str, watches: &mut Watches) {
    let connection = connect(server).await;
    let (_, list) = Client::connect(server).await.json("GET", HARDWARE, &[], "").await;
    let revision = list["metadata"]["resourceVersion"].as_str().unwrap();
    let path = format!("{HARDWARE}?watch=true&resourceVersion={revision}");
    for _ in 0..EACH {
        let answer = send(&connection, ("GET", &path, token), empty()).await;
        assert_eq!(answer.status(), 200);
        watches.push((answer.into_body(), connection.clone()));
    }
}

/// CPU time of this process for a write, a concurrent read, and the event in every watch.
async fn cost_of_a_write(server: &Server, name: &str, watches: &mut Watches) -> Duration {
    let cpu_time = || Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap();
    let mut client = Client::connect(server).await;
    let began = cpu_time();
    let object = serde_json::json!({ "metadata": { "name": name } });
    let (code, _) = client.json("POST", HARDWARE, &[], object.to_string()).await;
    assert_eq!(code, 201);
    let (code, _) = client.json("GET", HARDWARE, &[], "").await;
    assert_eq!(code, 200);
    for (body, _) in watches {
        let frame = tokio::time::timeout(PATIENCE, body.frame()).await.expect("an event");
        let line = frame.unwrap().unwrap().into_data().unwrap();
        assert!(line.starts_with(b"{\"object\"") || line.starts_with(b"{\"type\""), "{line:?}");
    }
    cpu_time() - began
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_idle_watches_leave_the_server_awake() {
    let server = Server::start().await;
    let watcher = account(&server, "watcher").await;
    let mut watches = Vec::new();
    watch(&server, &watcher, &mut watches).await;
    let few = cost_of_a_write(&server, "few", &mut watches).await;
    for _ in 1..10 {
        watch(&server, &watcher, &mut watches).await;
    }
    let many = cost_of_a_write(&server, "many", &mut watches).await;
    assert!(many < few * 30, "{EACH} watches take {few:?} of the processor, ten times {many:?}");
    drop(watches);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_nobody_reads_ends_in_its_time() {
    let server = Server::start().await;
    let mut client = Client::connect(&server).await;
    let text = "x".repeat(2 * 1024 * 1024);
    for name in ["a", "b", "c", "d"] {
        let object = serde_json::json!({
            "metadata": { "name": name }, "spec": { "userData": text },
        });
        let (code, _) = client.json("POST", HARDWARE, &[], object.to_string()).await;
        assert_eq!(code, 201);
    }
    let before = server.store.stats().watches;
    let connection = connect(&server).await;
    let path = format!("{HARDWARE}?watch=true&timeoutSeconds=2");
    let answer = send(&connection, ("GET", &path, &server.token), empty()).await;
    assert_eq!(answer.status(), 200);
    assert_eq!(server.store.stats().watches, before + 1);
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while server.store.stats().watches > before {
        assert!(tokio::time::Instant::now() < deadline, "the watch is still held");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    drop(answer);
    server.stop().await;
}

/// Opens a connection from an address that this test's clients do not use.
async fn stranger(server: &Server) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.2:0".parse::<SocketAddr>().unwrap()).unwrap();
    socket.connect(server.address().parse().unwrap()).await.unwrap()
}

/// Checks that clients which send no data and reopen closed connections do not block new clients.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strangers_who_come_again_and_again_keep_no_newcomer_out() {
    let server = Server::start().await;
    let address: SocketAddr = server.address().parse().unwrap();
    let opened = Arc::new(AtomicUsize::new(0));
    let mut strangers = JoinSet::new();
    for number in 0..STRANGERS_MANY {
        let opened = Arc::clone(&opened);
        strangers.spawn(async move {
            loop {
                let socket = TcpSocket::new_v4().unwrap();
                let from = SocketAddr::from(([127, 0, 0, 2 + (number % 4) as u8], 0));
                socket.bind(from).unwrap();
                if let Ok(mut socket) = socket.connect(address).await {
                    opened.fetch_add(1, Ordering::Relaxed);
                    // The read ends when the server closes the connection.
                    let _ = socket.read(&mut [0]).await;
                }
            }
        });
    }
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while opened.load(Ordering::Relaxed) < 2 * STRANGERS_MANY {
        assert!(tokio::time::Instant::now() < deadline, "the clients do not connect");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    for _ in 0..10 {
        let mut client = Client::connect(&server).await;
        let (code, _) = client.json("GET", HARDWARE, &[], "").await;
        assert_eq!(code, 200);
    }
    strangers.shutdown().await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strangers_who_say_nothing_are_sent_away() {
    let server = Server::start().await;
    let mut silent = Vec::new();
    for _ in 0..apiserver::UNAUTHENTICATED.each + 50 {
        silent.push(stranger(&server).await);
    }
    // The slots of that address are in use; those of other addresses are free.
    let mut client = Client::connect(&server).await;
    let (code, _) = client.json("GET", HARDWARE, &[], "").await;
    assert_eq!(code, 200);
    let is_open = |socket: &&TcpStream| {
        let read = socket.try_read(&mut [0]);
        read.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
    };
    let open = silent.iter().filter(is_open).count();
    assert!(open > 0, "answered before the unauthenticated clients were disconnected");
    let deadline = tokio::time::Instant::now() + PATIENCE;
    for socket in &mut silent {
        let mut byte = [0];
        let ended = tokio::time::timeout_at(deadline, socket.read(&mut byte)).await;
        assert!(matches!(ended.expect("it is closed in time"), Ok(0) | Err(_)));
    }
    // The address can connect again.
    let mut again = stranger(&server).await;
    let mut byte = [0];
    let open = tokio::time::timeout(Duration::from_millis(200), again.read(&mut byte)).await;
    assert!(open.is_err(), "it stays open: {open:?}");
    server.stop().await;
}
