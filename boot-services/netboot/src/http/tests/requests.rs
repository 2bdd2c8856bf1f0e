//! Tests request patterns: several requests at once, unexpected bodies, TLS, hundreds of slow
//! clients.

use std::process::Command;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;

use super::{Answer, Server, ask, numbers, server};
use crate::http::{Downloads, HttpService, files_router, serve, serve_tls};
use crate::{Files, Services};

/// Starts another listener with other settings, which stops with the server.
async fn beside(
    server: &Server,
    service: impl Into<HttpService> + Send + 'static,
) -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(serve(listener, service, server.shutdown.clone()));
    address
}

/// Reads the next response on a kept-alive connection; `body` is true if a body follows.
async fn answer(stream: &mut (impl AsyncRead + Unpin), body: bool) -> Answer {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        bytes.push(stream.read_u8().await.unwrap());
    }
    let mut answer = Answer::read(&bytes);
    if body && let Some(length) = answer.header("content-length") {
        answer.body = vec![0; length.parse().unwrap()];
        stream.read_exact(&mut answer.body).await.unwrap();
    }
    answer
}

#[tokio::test]
async fn the_router_answers_for_files_as_the_short_way_does() {
    let server = server().await;
    let routed = beside(&server, server.service.router.clone()).await;
    let path = "/images/debian/12.raw";
    let tag = server.ask("HEAD", path, "").await.header("etag").unwrap().to_owned();
    for (method, path, headers) in [
        ("GET", path, String::new()),
        ("HEAD", path, String::new()),
        ("GET", "/images/debian/12%2Eraw?x", String::new()),
        ("GET", "http://box:7080/agent/vmlinuz-x86_64", String::new()),
        ("GET", path, "range: bytes=5-9\r\n".to_owned()),
        ("HEAD", path, "range: bytes=5-9\r\n".to_owned()),
        ("GET", path, "range: bytes=2000000-\r\n".to_owned()),
        ("GET", path, format!("range: bytes=5-9\r\nif-range: {tag}\r\n")),
        ("GET", path, "range: bytes=5-9\r\nif-range: \"x\"\r\n".to_owned()),
        ("GET", path, format!("if-none-match: {tag}\r\n")),
        ("GET", "/images/none", String::new()),
        ("GET", "/images/../secret", String::new()),
        ("GET", "/ipxe/binary/x/ipxe.efi", String::new()),
        ("GET", "/ipxe/binary/netboot-not-allowed", String::new()),
        ("POST", path, String::new()),
    ] {
        let short = server.ask(method, path, &headers).await;
        let long = ask(routed, method, path, &headers).await;
        assert_eq!(short.status, long.status, "{method} {path} {headers}");
        assert!(short.body == long.body, "{method} {path} {headers}");
        for name in ["content-length", "content-range", "content-type", "etag", "accept-ranges"] {
            let (short, long) = (short.header(name), long.header(name));
            assert_eq!(short, long, "{name} of {method} {path} {headers}");
        }
        assert!(short.header("date").is_some());
    }
}

#[tokio::test]
async fn holes_are_told_to_who_asks() {
    let server = server().await;
    let sparse = server.folder.path().join("images/sparse.raw");
    std::fs::File::create(&sparse).unwrap().set_len(8 << 20).unwrap();
    let holes = |answer: Answer| answer.header("tinbox-holes").map(str::to_owned);
    let ask = |fields| server.ask("GET", "/images/sparse.raw", fields);
    assert_eq!(holes(ask("tinbox-holes: ?1\r\n").await).as_deref(), Some("0-8388607"));
    assert_eq!(holes(ask("").await), None);
    // Holes are not reported for a range.
    assert_eq!(holes(ask("tinbox-holes: ?1\r\nrange: bytes=0-9\r\n").await), None);
}

#[tokio::test]
async fn several_requests_at_once_are_answered_in_their_order() {
    let server = server().await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let mut requests = Vec::new();
    for line in [
        "GET /agent/vmlinuz-x86_64",
        "HEAD /images/debian/12.raw",
        "GET /images/none",
        "GET /images/debian/12.raw",
        // The router handles the connection from this request on.
        "GET /healthz",
        "GET /agent/vmlinuz-x86_64",
    ] {
        requests.extend(format!("{line} HTTP/1.1\r\nhost: box\r\n\r\n").into_bytes());
    }
    // The first bytes arrive one at a time, as over a very slow link, then all the rest.
    let (slowly, rest) = requests.split_at(60);
    for byte in slowly {
        stream.write_all(&[*byte]).await.unwrap();
    }
    stream.write_all(rest).await.unwrap();
    assert_eq!(answer(&mut stream, true).await.body, b"kernel");
    let head = answer(&mut stream, false).await;
    assert_eq!(head.header("content-length"), Some("1048576"));
    assert_eq!(answer(&mut stream, true).await.status, 404);
    assert!(answer(&mut stream, true).await.body == numbers());
    assert_eq!(answer(&mut stream, true).await.body, b"ok\n");
    assert_eq!(answer(&mut stream, true).await.body, b"kernel");
}

#[tokio::test]
async fn a_body_is_never_taken_for_a_request() {
    let server = server().await;
    let smuggled = "GET /images/none HTTP/1.1\r\nhost: box\r\n\r\n";
    let chunk = format!("{:x}\r\n{smuggled}\r\n0\r\n\r\n", smuggled.len());
    for (fields, body) in [
        (format!("content-length: {}\r\n", smuggled.len()), smuggled.to_owned()),
        ("transfer-encoding: chunked\r\n".to_owned(), chunk),
    ] {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        let path = "/agent/vmlinuz-x86_64";
        let first = format!("GET {path} HTTP/1.1\r\nhost: box\r\n{fields}\r\n{body}");
        let last = format!("GET {path} HTTP/1.1\r\nhost: box\r\nconnection: close\r\n\r\n");
        stream.write_all(format!("{first}{last}").as_bytes()).await.unwrap();
        let mut answers = Vec::new();
        stream.read_to_end(&mut answers).await.unwrap();
        let text = String::from_utf8(answers).unwrap();
        assert!(!text.contains("HTTP/1.1 404"), "{text}");
        assert!((1..=2).contains(&text.matches("HTTP/1.1 200 OK").count()), "{text}");
    }
    let both = "content-length: 3\r\ntransfer-encoding: chunked\r\n";
    let answer = server.ask("GET", "/agent/vmlinuz-x86_64", both).await;
    assert!([200, 400].contains(&answer.status), "{}", answer.head);
}

/// Environment variable that is set in the process which runs only this test.
const ALONE: &str = "TINBOX_NETBOOT_ALONE";

/// Memory is measured per process, which other tests may share. So the test runs in its own
/// process.
#[test]
fn hundreds_of_slow_clients_take_neither_memory_nor_anybodys_turn() {
    const NAME: &str = concat!(
        "http::tests::requests::",
        "hundreds_of_slow_clients_take_neither_memory_nor_anybodys_turn"
    );
    if std::env::var_os(ALONE).is_some() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        return runtime.unwrap().block_on(hundreds_of_slow_clients());
    }
    let mut alone = Command::new(std::env::current_exe().unwrap());
    alone.args(["--exact", NAME, "--nocapture"]).env(ALONE, "1");
    let output = alone.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}\n{error}");
}

async fn hundreds_of_slow_clients() {
    const CLIENTS: usize = 300;
    let server = server().await;
    let file = std::fs::File::create(server.folder.path().join("images/big")).unwrap();
    file.set_len(1 << 30).unwrap();
    let before = resident();
    let mut slow = Vec::new();
    for _ in 0..CLIENTS {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(b"GET /images/big HTTP/1.1\r\nhost: box\r\n\r\n").await.unwrap();
        slow.push(stream);
    }
    for stream in &mut slow {
        let mut some = vec![0; 4096];
        stream.read_exact(&mut some).await.unwrap();
        assert!(some.starts_with(b"HTTP/1.1 200 OK"));
    }
    assert_eq!(server.get("/agent/vmlinuz-x86_64").await.body, b"kernel");
    let grown = resident().saturating_sub(before);
    assert!(grown < 32 << 20, "{CLIENTS} slow clients took {grown} bytes");
}

/// Returns the bytes of this process in memory.
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

#[tokio::test]
async fn a_file_that_becomes_shorter_ends_the_connection() {
    let server = server().await;
    let file = std::fs::File::create(server.folder.path().join("images/big")).unwrap();
    file.set_len(1 << 30).unwrap();
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(b"GET /images/big HTTP/1.1\r\nhost: box\r\n\r\n").await.unwrap();
    let head = answer(&mut stream, false).await;
    assert_eq!(head.header("content-length"), Some("1073741824"));
    file.set_len(1).unwrap();
    let mut rest = tokio::io::sink();
    let taken = tokio::io::copy(&mut stream, &mut rest).await.unwrap_or_default();
    assert!(taken < 1 << 30, "{taken}");
}

#[tokio::test]
async fn the_agents_files_lie_at_the_root_of_a_file_server() {
    let server = server().await;
    let services = Services {
        files: Files::new(server.folder.path()),
        plans: Arc::new(super::Four),
        observer: server.events.clone(),
    };
    let routes = files_router(services.clone());
    let service = HttpService::with_downloads(routes.clone(), Downloads::flat(services));
    for address in [beside(&server, service).await, beside(&server, routes).await] {
        assert_eq!(ask(address, "GET", "/vmlinuz-x86_64", "").await.body, b"kernel");
        for path in ["/", "/none", "/..", "/agent/vmlinuz-x86_64", "/%2e%2e%2fsecret"] {
            assert_eq!(ask(address, "GET", path, "").await.status, 404, "{path}");
        }
    }
}

#[tokio::test]
async fn the_same_is_served_over_tls() {
    let server = server().await;
    let made = rcgen::generate_simple_self_signed(["box".to_owned()]).unwrap();
    let key = made.signing_key.serialize_der().try_into().unwrap();
    let certificate = made.cert.der().clone();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let tls = rustls::ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key)
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(serve_tls(
        listener,
        Arc::new(tls),
        server.service.clone(),
        server.shutdown.clone(),
    ));
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate).unwrap();
    let client = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(address).await.unwrap();
    let connector = TlsConnector::from(Arc::new(client));
    let mut stream = connector.connect("box".try_into().unwrap(), stream).await.unwrap();
    for (range, first, last) in [
        ("", 0, (1 << 20) - 1),
        ("range: bytes=70000-299999\r\n", 70_000, 299_999),
        ("range: bytes=1-1\r\n", 1, 1),
    ] {
        let request = format!("GET /images/debian/12.raw HTTP/1.1\r\nhost: box\r\n{range}\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let answer = answer(&mut stream, true).await;
        assert!(answer.body == numbers()[first..=last], "{range}");
    }
    let request = "HEAD /images/debian/12.raw HTTP/1.1\r\nhost: box\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    assert_eq!(answer(&mut stream, false).await.status, 200);
    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: box\r\n\r\n").await.unwrap();
    assert_eq!(answer(&mut stream, true).await.body, b"ok\n");
    // A client without TLS is not served.
    let mut plain = TcpStream::connect(address).await.unwrap();
    plain.write_all(b"GET /healthz HTTP/1.1\r\nhost: box\r\n\r\n").await.unwrap();
    let mut nothing = Vec::new();
    let _ = plain.read_to_end(&mut nothing).await;
    assert!(!nothing.starts_with(b"HTTP"));
}
