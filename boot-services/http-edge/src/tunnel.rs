//! Tunnels to the server itself: CONNECT requests (RFC 9110 section 9.3.6) for its own names, by
//! which clients that cannot resolve a name use the server as their proxy.
//!
//! A tunnel ends in a router of this process. No connection to another host is made, so that this
//! is never a proxy to other hosts.

use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::uri::Authority;
use axum::http::{Request, Response, StatusCode, Version};
use hyper::body::Incoming;
use hyper::ext::ReasonPhrase;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use crate::{Connections, Limits};

/// Limits of concurrent tunnels, in total and for each client.
const TUNNELS: Limits = Limits { total: 64, each: 8 };
/// Maximum time of a tunnel, with its handshake: clients download some small files.
const TUNNEL_TIME: Duration = Duration::from_secs(120);
/// Maximum time for the request's end, for the TLS handshake, and for the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum bytes of a request's head, and of a response that waits for the client.
const MAX_BUFFER: usize = 64 << 10;
/// Maximum concurrent requests on one HTTP/2 connection.
const MAX_STREAMS: u32 = 16;
/// Maximum length of a requested host in an error, in characters.
const HOST_CHARS_MAX: usize = 60;

/// Names to which clients may request a tunnel, and the routes behind them.
#[derive(Clone)]
pub struct Tunnel {
    names: Arc<[String]>,
    port: u16,
    tls: TlsAcceptor,
    router: Router,
    places: Connections,
}

impl Tunnel {
    /// Creates tunnels to `names` at `port`. Behind them `router` is served over TLS, which has the
    /// certificate of these names.
    pub fn new(
        names: Vec<String>,
        port: u16,
        tls: Arc<rustls::ServerConfig>,
        router: Router,
    ) -> Self {
        let places = Connections::new(TUNNELS);
        Self { names: names.into(), port, tls: TlsAcceptor::from(tls), router, places }
    }

    /// Answers a CONNECT request, and serves the tunnel in a task of its own.
    pub fn answer(
        &self,
        request: Request<Incoming>,
        peer: SocketAddr,
        shutdown: CancellationToken,
    ) -> Response<Body> {
        if let Err((status, why)) = self.check(request.version(), request.uri().authority()) {
            return refused(status, why);
        }
        let Some(place) = self.places.enter(peer.ip()) else {
            return refused(StatusCode::SERVICE_UNAVAILABLE, "too many tunnels".to_owned());
        };
        let tunnel = self.clone();
        tokio::spawn(async move {
            let limited = tokio::time::timeout(TUNNEL_TIME, tunnel.serve(request));
            // The client sees how its tunnel ends; nothing is done about it here.
            tokio::select! {
                _ = limited => {}
                () = place.ended().cancelled_owned() => {}
                () = shutdown.cancelled() => {}
            }
        });
        Response::new(Body::empty())
    }

    /// Checks the target of a request.
    fn check(
        &self,
        version: Version,
        target: Option<&Authority>,
    ) -> Result<(), (StatusCode, String)> {
        if version != Version::HTTP_11 {
            let why = "a tunnel is requested over HTTP/1.1".to_owned();
            return Err((StatusCode::HTTP_VERSION_NOT_SUPPORTED, why));
        }
        let (host, port) = target.map_or(("", None), |it| (it.host(), it.port_u16()));
        let is_own = self.names.iter().any(|name| name.eq_ignore_ascii_case(host));
        if is_own && port == Some(self.port) {
            return Ok(());
        }
        let host: String = host.chars().take(HOST_CHARS_MAX).collect();
        let why = format!("this box is a proxy to itself only: add {host} to NO_PROXY");
        Err((StatusCode::FORBIDDEN, why))
    }

    async fn serve(self, request: Request<Incoming>) -> Result<(), Box<dyn Error + Send + Sync>> {
        let stream = tokio::time::timeout(HEAD_TIMEOUT, hyper::upgrade::on(request)).await??;
        let handshake = self.tls.accept(TokioIo::new(stream));
        let stream = tokio::time::timeout(HEAD_TIMEOUT, handshake).await??;
        let mut builder = Builder::new(TokioExecutor::new());
        builder
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIMEOUT)
            .max_buf_size(MAX_BUFFER);
        builder
            .http2()
            .timer(TokioTimer::new())
            .max_concurrent_streams(MAX_STREAMS)
            .max_send_buf_size(MAX_BUFFER);
        let service = TowerToHyperService::new(self.router);
        builder.serve_connection(TokioIo::new(stream), service).await
    }
}

/// Returns a response whose reason is `why` too: Go's clients show only the reason.
fn refused(status: StatusCode, why: String) -> Response<Body> {
    let mut response = Response::new(Body::from(format!("{why}\n")));
    *response.status_mut() = status;
    if let Ok(reason) = ReasonPhrase::try_from(why) {
        response.extensions_mut().insert(reason);
    }
    response
}
