//! Listeners for HTTP/1.1 and HTTP/2, plain or over TLS, with limits for connections.

use std::convert::Infallible;
use std::error::Error;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{Method, Request, Response};
use http_edge::{Bodies, BodyLimits, Connections, Limits, Proof, Tunnel};
use hyper::body::Incoming;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::activity::Activity;
use super::connection::{HEAD_TIMEOUT, Next, RewoundStream, files};
use super::downloads::Downloads;
use super::send_file::{STALL, SendFile};
use super::write_timeout::WriteTimeout;

/// Default limits of concurrent connections, in total and for each client: firmware, loaders,
/// agents that fetch images, and browsers.
pub const CONNECTIONS: Limits = Limits { total: 1024, each: 128 };
/// Limits of concurrent connections for clients that hold one connection permanently.
pub const LASTING_CONNECTIONS: Limits = Limits { total: 4096, each: 64 };
/// Limits for the request bodies of unauthenticated clients. Reports of machines are far smaller.
const BODIES: BodyLimits =
    BodyLimits { total: 8 << 20, each: 2 << 20, time: Duration::from_secs(10) };
/// HTTP/2 flow-control windows in bytes where bodies are limited, for one stream and for one
/// connection.
const STREAM_WINDOW: u32 = 64 << 10;
const CONNECTION_WINDOW: u32 = 256 << 10;
/// Maximum time of an HTTP/2 connection without a request; [`HEAD_TIMEOUT`] for HTTP/1.1.
const IDLE: Duration = Duration::from_secs(60);
/// Time in which a client must authenticate, on listeners that require authentication.
const PROOF: Duration = Duration::from_secs(20);
/// Time in which running requests may end on a connection whose client did not authenticate.
const UNPROVEN_LINGER: Duration = Duration::from_secs(5);
/// Maximum bytes of a request's head, and of a response that waits for the socket.
const MAX_BUFFER: usize = 256 << 10;
/// Maximum concurrent requests on one HTTP/2 connection.
const MAX_STREAMS: u32 = 64;
/// Maximum time for running responses after the server begins to shut down.
const LINGER: Duration = Duration::from_secs(5);
/// First byte of a TLS connection: content type handshake (RFC 8446 section 5.1).
const TLS_HANDSHAKE: u8 = 22;
/// Pause after a failed accept: file descriptors are exhausted until other connections end.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Routes and limits of one listener: a router, and files that bypass the router.
#[derive(Clone)]
pub struct HttpService {
    pub(super) router: Router,
    pub(super) downloads: Option<Downloads>,
    pub(super) connections: Limits,
    pub(super) bodies: Option<Bodies>,
    pub(super) proof: Option<Duration>,
    pub(super) tunnel: Option<Tunnel>,
}

impl From<Router> for HttpService {
    fn from(router: Router) -> Self {
        let connections = CONNECTIONS;
        Self { router, downloads: None, connections, bodies: None, proof: None, tunnel: None }
    }
}

impl HttpService {
    /// Creates a listener configuration in which files bypass the router. The router must serve the
    /// paths of these files too: over HTTP/2, and on a connection that made another request before.
    pub fn with_downloads(router: Router, downloads: Downloads) -> Self {
        Self { downloads: Some(downloads), ..router.into() }
    }

    /// Limits request bodies for unauthenticated clients: 8 MiB in total, 2 MiB for each network,
    /// and 10 s for each body.
    #[must_use]
    pub fn for_unknown_clients(self) -> Self {
        Self { bodies: Some(Bodies::new(BODIES)), ..self }
    }

    /// Limits connections to 4096 in total and 64 for each network, for clients that hold one
    /// connection permanently.
    #[must_use]
    pub fn for_lasting_connections(self) -> Self {
        Self { connections: LASTING_CONNECTIONS, ..self }
    }

    /// Ends a connection on which no request authenticates the client within 20 s. The code that
    /// authenticates a client reports it through the [`Proof`] in the request's extensions.
    #[must_use]
    pub fn for_known_clients(self) -> Self {
        Self { proof: Some(PROOF), ..self }
    }

    /// Answers CONNECT requests with tunnels. Without this, the router gets them.
    #[must_use]
    pub fn with_tunnel(self, tunnel: Tunnel) -> Self {
        Self { tunnel: Some(tunnel), ..self }
    }

    /// Returns the state of a connection that begins now.
    fn for_connection(&self) -> ConnectionService {
        let Self { router, downloads, bodies, tunnel, .. } = self.clone();
        let proof = self.proof.map(Proof::within);
        ConnectionService { router, downloads, bodies, proof, tunnel }
    }
}

/// State of an [`HttpService`] for one connection.
struct ConnectionService {
    router: Router,
    downloads: Option<Downloads>,
    bodies: Option<Bodies>,
    proof: Option<Proof>,
    tunnel: Option<Tunnel>,
}

/// Serves `service` until `shutdown`, with the client's address as `ConnectInfo<SocketAddr>`.
/// Running responses then have 5 s to end.
pub async fn serve(
    listener: TcpListener,
    service: impl Into<HttpService>,
    shutdown: CancellationToken,
) {
    let service = service.into();
    let limits = service.connections;
    let connection =
        move |stream, peer, shutdown| serve_one(stream, peer, service.for_connection(), shutdown);
    accept(listener, limits, connection, shutdown).await;
}

/// Serves `service` as [`serve`] does, over TLS. A client must finish its handshake within 30 s.
pub async fn serve_tls(
    listener: TcpListener,
    tls: Arc<rustls::ServerConfig>,
    service: impl Into<HttpService>,
    shutdown: CancellationToken,
) {
    let (service, acceptor) = (service.into(), TlsAcceptor::from(tls));
    let limits = service.connections;
    let connection = move |stream, peer, shutdown| {
        let (service, handshake) = (service.for_connection(), acceptor.accept(stream));
        async move {
            let stream = tokio::time::timeout(HEAD_TIMEOUT, handshake).await??;
            serve_one(stream, peer, service, shutdown).await
        }
    };
    accept(listener, limits, connection, shutdown).await;
}

/// Serves `service` as [`serve_tls`] does. A connection without a TLS handshake is served in plain
/// HTTP if `plain` is true, and closed otherwise.
pub async fn serve_tls_or_plain(
    listener: TcpListener,
    tls: Arc<rustls::ServerConfig>,
    plain: bool,
    service: impl Into<HttpService>,
    shutdown: CancellationToken,
) {
    let (service, acceptor) = (service.into(), TlsAcceptor::from(tls));
    let limits = service.connections;
    let connection = move |stream: TcpStream, peer, shutdown| {
        let (service, acceptor) = (service.for_connection(), acceptor.clone());
        async move {
            let mut first = [0];
            tokio::time::timeout(HEAD_TIMEOUT, stream.peek(&mut first)).await??;
            if first[0] == TLS_HANDSHAKE {
                let handshake = acceptor.accept(stream);
                let stream = tokio::time::timeout(HEAD_TIMEOUT, handshake).await??;
                return serve_one(stream, peer, service, shutdown).await;
            }
            if !plain {
                return Err("the client does not use TLS".into());
            }
            serve_one(stream, peer, service, shutdown).await
        }
    };
    accept(listener, limits, connection, shutdown).await;
}

/// Accepts connections within the limits, and serves each in its own task.
async fn accept<F: Future<Output = ConnectionResult> + Send + 'static>(
    listener: TcpListener,
    limits: Limits,
    connection: impl Fn(TcpStream, SocketAddr, CancellationToken) -> F,
    shutdown: CancellationToken,
) {
    let connections = Connections::new(limits);
    let tasks = TaskTracker::new();
    loop {
        let accepted = tokio::select! {
            () = shutdown.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "accepting an HTTP connection failed");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let Some(place) = connections.enter(peer.ip()) else {
            tracing::debug!(%peer, "too many connections");
            continue;
        };
        // Without Nagle's algorithm small responses leave at once. On failure the connection is
        // only slower.
        let _ = stream.set_nodelay(true);
        let connection = connection(stream, peer, shutdown.clone());
        tasks.spawn(async move {
            match place.ended().run_until_cancelled(connection).await {
                Some(Ok(())) => {}
                Some(Err(error)) => tracing::debug!(%peer, error, "an HTTP connection ended early"),
                None => tracing::debug!(%peer, "closed an HTTP connection for a new one"),
            }
        });
    }
    drop(listener);
    tasks.close();
    if tokio::time::timeout(LINGER, tasks.wait()).await.is_err() {
        tracing::warn!("the shutdown interrupted HTTP responses");
    }
}

type ConnectionResult = Result<(), Box<dyn Error + Send + Sync>>;

/// Serves one connection from its first byte to its last.
async fn serve_one<C: SendFile>(
    stream: C,
    peer: SocketAddr,
    service: ConnectionService,
    shutdown: CancellationToken,
) -> ConnectionResult {
    let rest = match &service.downloads {
        Some(downloads) => match files(stream, peer, downloads, &shutdown).await? {
            Next::Closed => return Ok(()),
            Next::Router(rest) => rest,
        },
        None => RewoundStream::fresh(stream),
    };
    route(rest, peer, service, shutdown).await
}

/// Serves the part of a connection that the router handles, over HTTP/1.1 or HTTP/2.
async fn route<S>(
    stream: S,
    peer: SocketAddr,
    ConnectionService { router, bodies, proof, tunnel, .. }: ConnectionService,
    shutdown: CancellationToken,
) -> ConnectionResult
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
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
        .max_send_buf_size(MAX_BUFFER)
        .keep_alive_interval(HEAD_TIMEOUT);
    if bodies.is_some() {
        builder
            .http2()
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW);
    }
    let service = TowerToHyperService::new(router);
    let activity = Activity::new(IDLE);
    let requests = activity.clone();
    let (shown, ending) = (proof.clone(), shutdown.clone());
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(ConnectInfo(peer));
        if let Some(proof) = &shown {
            request.extensions_mut().insert(proof.clone());
        }
        let running = requests.begin();
        let tunnel = tunnel.as_ref().filter(|_| request.method() == Method::CONNECT);
        let answer = match (tunnel, &bodies) {
            (Some(tunnel), _) => Err(tunnel.answer(request, peer, ending.clone())),
            (None, Some(bodies)) => {
                Ok(service.call(request.map(|body| Body::new(bodies.limit(peer.ip(), body)))))
            }
            (None, None) => Ok(service.call(request.map(Body::new))),
        };
        async move {
            let answer: Response<Body> = match answer {
                Ok(routed) => routed.await?,
                Err(answer) => answer,
            };
            Ok::<_, Infallible>(answer.map(|body| running.until_end(body)))
        }
    });
    let stream = TokioIo::new(WriteTimeout::new(stream, STALL));
    let mut connection = pin!(builder.serve_connection_with_upgrades(stream, service));
    tokio::select! {
        ended = connection.as_mut() => return ended,
        () = shutdown.cancelled() => connection.as_mut().graceful_shutdown(),
        () = activity.is_idle() => connection.as_mut().graceful_shutdown(),
        () = overdue(proof.as_ref()) => {
            connection.as_mut().graceful_shutdown();
            return tokio::time::timeout(UNPROVEN_LINGER, connection).await?;
        }
    }
    connection.await
}

async fn overdue(proof: Option<&Proof>) {
    match proof {
        Some(proof) => proof.overdue().await,
        None => std::future::pending().await,
    }
}
