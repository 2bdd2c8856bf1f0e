//! Tunnels to the server itself: CONNECT requests (RFC 9110 section 9.3.6) for its own names, by
//! which clients that cannot resolve a name use the server as their proxy.
//!
//! A tunnel ends in a router of this process. No connection to another host is made, so that this
//! is never a proxy to other hosts.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::uri::Authority;
use axum::http::{Request, Response, StatusCode, Version};
use http_edge::{Connections, Limits};
use hyper::body::Incoming;
use hyper::ext::ReasonPhrase;
use hyper_util::rt::TokioIo;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::connection::HEAD_TIMEOUT;
use super::listener::{ConnectionResult, ConnectionService, routed};

/// Limits of concurrent tunnels, in total and for each client.
const TUNNELS: Limits = Limits { total: 64, each: 8 };
/// Maximum time of a tunnel, with its handshake: clients download some small files.
const TUNNEL_TIME: Duration = Duration::from_secs(120);
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
    pub(super) fn answer(
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
            let served = tunnel.serve(request, peer, shutdown);
            let limited = tokio::time::timeout(TUNNEL_TIME, served);
            match place.ended().run_until_cancelled(limited).await {
                Some(Ok(Ok(()))) => {}
                Some(Ok(Err(error))) => tracing::debug!(%peer, error, "a tunnel ended early"),
                Some(Err(_)) => tracing::debug!(%peer, "closed a tunnel after its time"),
                None => tracing::debug!(%peer, "closed a tunnel for a new one"),
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

    async fn serve(
        self,
        request: Request<Incoming>,
        peer: SocketAddr,
        shutdown: CancellationToken,
    ) -> ConnectionResult {
        let stream = tokio::time::timeout(HEAD_TIMEOUT, hyper::upgrade::on(request)).await??;
        let handshake = self.tls.accept(TokioIo::new(stream));
        let stream = tokio::time::timeout(HEAD_TIMEOUT, handshake).await??;
        routed(stream, peer, ConnectionService::of(self.router), shutdown).await
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
