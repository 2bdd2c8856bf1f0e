//! Tests tunnels over TLS: those of the server's own name, and refused ones.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use rustls::pki_types::CertificateDer;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_util::sync::{CancellationToken, DropGuard};

use http_edge::Tunnel;

use crate::http::{HttpService, serve_tls};

const NAME: &str = "gitlab.box";

/// A server with tunnels, and a client that trusts it. The tunnels lead to other routes.
struct World {
    address: SocketAddr,
    client: TlsConnector,
    _stop: DropGuard,
}

impl World {
    async fn start() -> Self {
        let made = rcgen::generate_simple_self_signed(["box".to_owned(), NAME.to_owned()]).unwrap();
        let key = made.signing_key.serialize_der().try_into().unwrap();
        let certificate: CertificateDer = made.cert.der().clone();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let tls = rustls::ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.clone()], key)
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, tls) = (listener.local_addr().unwrap(), Arc::new(tls));
        let route = |text: &'static str| Router::new().route("/", get(move || async move { text }));
        let tunnel =
            Tunnel::new(vec![NAME.to_owned()], address.port(), Arc::clone(&tls), route("inside"));
        let service = HttpService::from(route("outside")).with_tunnel(tunnel);
        let shutdown = CancellationToken::new();
        tokio::spawn(serve_tls(listener, tls, service, shutdown.clone()));
        let mut roots = rustls::RootCertStore::empty();
        roots.add(certificate).unwrap();
        let client = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let client = TlsConnector::from(Arc::new(client));
        Self { address, client, _stop: shutdown.drop_guard() }
    }

    async fn tls<S: AsyncRead + AsyncWrite + Unpin>(&self, name: &str, stream: S) -> TlsStream<S> {
        self.client.connect(name.to_owned().try_into().unwrap(), stream).await.unwrap()
    }

    async fn connect(&self) -> TlsStream<TcpStream> {
        self.tls("box", TcpStream::connect(self.address).await.unwrap()).await
    }

    /// Requests a tunnel on a new connection. Returns the connection and the head of the response.
    async fn request(&self, target: &str) -> (TlsStream<TcpStream>, String) {
        let mut stream = self.connect().await;
        let request = format!("CONNECT {target} HTTP/1.1\r\nhost: {target}\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let head = head(&mut stream).await;
        (stream, head)
    }
}

async fn head(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        bytes.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(bytes).unwrap()
}

async fn get_root(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> String {
    let request = b"GET / HTTP/1.1\r\nhost: box\r\nconnection: close\r\n\r\n";
    stream.write_all(request).await.unwrap();
    let mut text = String::new();
    // The server may close without a TLS alert.
    let _ = stream.read_to_string(&mut text).await;
    text
}

#[tokio::test]
async fn a_tunnel_leads_to_the_server_s_own_name_only() {
    let world = World::start().await;
    let port = world.address.port();
    for target in [format!("{NAME}:{port}"), format!("GITLAB.box:{port}")] {
        let (stream, head) = world.request(&target).await;
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        let text = get_root(&mut world.tls(NAME, stream).await).await;
        assert!(text.ends_with("\r\n\r\ninside"), "{text}");
    }
    for target in [
        format!("box:{port}"),
        format!("127.0.0.1:{port}"),
        format!("{NAME}:22"),
        format!("{NAME}.example:{port}"),
        "github.example:443".to_owned(),
        format!("{}:1", "a".repeat(4000)),
    ] {
        let (_, head) = world.request(&target).await;
        let host: String = target.split(':').next().unwrap().chars().take(60).collect();
        let why =
            format!("HTTP/1.1 403 this box is a proxy to itself only: add {host} to NO_PROXY");
        assert!(head.starts_with(&why), "{target}: {head}");
    }
    assert!(get_root(&mut world.connect().await).await.ends_with("\r\n\r\noutside"));
}

#[tokio::test]
async fn a_new_tunnel_of_a_client_ends_its_oldest() {
    let world = World::start().await;
    let target = format!("{NAME}:{}", world.address.port());
    let mut tunnels = Vec::new();
    for _ in 0..9 {
        let (stream, head) = world.request(&target).await;
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        tunnels.push(world.tls(NAME, stream).await);
    }
    assert_eq!(tunnels[0].read(&mut [0]).await.unwrap_or_default(), 0);
    assert!(get_root(&mut tunnels[8]).await.ends_with("inside"));
}

#[tokio::test]
async fn what_follows_a_request_without_tls_ends_the_tunnel() {
    let world = World::start().await;
    let (mut stream, head) = world.request(&format!("{NAME}:{}", world.address.port())).await;
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest).await;
    assert!(!rest.starts_with(b"HTTP"), "{rest:?}");
}
