//! The listening edge: connections with limits, plain or over TLS, HTTP/1.1 and HTTP/2.

use std::error::Error;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{Request, Response};
use http_edge::{Bodies, BodyLimits, Connections, Limits, Proof};
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
use super::carrier::{Carrier, STALL};
use super::connection::{HEAD_TIMEOUT, Next, Rewound, files};
use super::downloads::Downloads;
use super::stalling::Stalling;

/// Connections at once, of firmware, loaders, agents that fetch images, and browsers.
pub const CONNECTIONS: Limits = Limits { total: 1024, each: 128 };
/// Connections at once where each machine has one that stays.
pub const LASTING_CONNECTIONS: Limits = Limits { total: 4096, each: 64 };
/// Bytes of requests by clients that nobody knows: what machines say of themselves is far less.
const BODIES: BodyLimits =
    BodyLimits { total: 8 << 20, each: 2 << 20, time: Duration::from_secs(10) };
/// Bytes in flight towards us where bodies are limited, on one stream and on one connection.
const STREAM_WINDOW: u32 = 64 << 10;
const CONNECTION_WINDOW: u32 = 256 << 10;
/// Longest time of an HTTP/2 connection without a request. HTTP/1.1 has [`HEAD_TIMEOUT`].
const IDLE: Duration = Duration::from_secs(60);
/// Time in which a client shows that it is known, where a listener asks for that.
const PROOF: Duration = Duration::from_secs(20);
/// Time in which requests end on a connection whose client has not shown that.
const UNPROVEN_LINGER: Duration = Duration::from_secs(5);
/// Bytes of a request's head, and of an answer that wait for the socket.
const MAX_BUFFER: usize = 256 << 10;
/// Requests at once on one HTTP/2 connection.
const MAX_STREAMS: u32 = 64;
/// How long running answers may take once the server shuts down.
const LINGER: Duration = Duration::from_secs(5);
/// The first byte of a TLS connection: content type handshake (RFC 8446 section 5.1).
const TLS_HANDSHAKE: u8 = 22;
/// Rest after a failed accept: it fails for want of file descriptors, which others give back.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What a listener serves: a router, and files that go past it.
#[derive(Clone)]
pub struct Face {
    pub(super) router: Router,
    pub(super) downloads: Option<Downloads>,
    pub(super) connections: Limits,
    pub(super) bodies: Option<Bodies>,
    pub(super) proof: Option<Duration>,
}

impl From<Router> for Face {
    fn from(router: Router) -> Self {
        Self { router, downloads: None, connections: CONNECTIONS, bodies: None, proof: None }
    }
}

impl Face {
    /// A router whose files go out by the shortest way. The router must answer their paths too:
    /// over HTTP/2, and on a connection that asked for something else before.
    pub fn with_downloads(router: Router, downloads: Downloads) -> Self {
        Self { downloads: Some(downloads), ..router.into() }
    }

    /// For clients that nobody knows: their requests' bodies are small, come soon, and are few.
    #[must_use]
    pub fn for_strangers(self) -> Self {
        Self { bodies: Some(Bodies::new(BODIES)), ..self }
    }

    /// For clients that each have a connection that stays.
    #[must_use]
    pub fn for_lasting_connections(self) -> Self {
        Self { connections: LASTING_CONNECTIONS, ..self }
    }

    /// For clients that are known: a connection ends on which none has shown that within 20 s. What
    /// knows a client says so by the [`Proof`] among a request's extensions.
    #[must_use]
    pub fn for_known_clients(self) -> Self {
        Self { proof: Some(PROOF), ..self }
    }

    /// Of a connection that begins now.
    fn accepted(&self) -> Accepted {
        let Self { router, downloads, bodies, .. } = self.clone();
        Accepted { router, downloads, bodies, proof: self.proof.map(Proof::within) }
    }
}

/// A [`Face`] as one connection is served it.
struct Accepted {
    router: Router,
    downloads: Option<Downloads>,
    bodies: Option<Bodies>,
    proof: Option<Proof>,
}

/// Serves `face` until `shutdown`, with the client's address as `ConnectInfo<SocketAddr>`.
/// Running answers get five seconds to end.
pub async fn serve(listener: TcpListener, face: impl Into<Face>, shutdown: CancellationToken) {
    let face = face.into();
    let limits = face.connections;
    let connection =
        move |stream, peer, shutdown| serve_one(stream, peer, face.accepted(), shutdown);
    accept(listener, limits, connection, shutdown).await;
}

/// As [`serve`], over TLS. A client finishes its handshake within half a minute.
pub async fn serve_tls(
    listener: TcpListener,
    tls: Arc<rustls::ServerConfig>,
    face: impl Into<Face>,
    shutdown: CancellationToken,
) {
    let (face, acceptor) = (face.into(), TlsAcceptor::from(tls));
    let limits = face.connections;
    let connection = move |stream, peer, shutdown| {
        let (face, handshake) = (face.accepted(), acceptor.accept(stream));
        async move {
            let stream = tokio::time::timeout(HEAD_TIMEOUT, handshake).await??;
            serve_one(stream, peer, face, shutdown).await
        }
    };
    accept(listener, limits, connection, shutdown).await;
}

/// As [`serve_tls`], for clients that begin with a TLS handshake; one that does not is served in
/// the clear where `plain` allows that, and else let go.
pub async fn serve_tls_or_plain(
    listener: TcpListener,
    tls: Arc<rustls::ServerConfig>,
    plain: bool,
    face: impl Into<Face>,
    shutdown: CancellationToken,
) {
    let (face, acceptor) = (face.into(), TlsAcceptor::from(tls));
    let limits = face.connections;
    let connection = move |stream: TcpStream, peer, shutdown| {
        let (face, acceptor) = (face.accepted(), acceptor.clone());
        async move {
            let mut first = [0];
            tokio::time::timeout(HEAD_TIMEOUT, stream.peek(&mut first)).await??;
            if first[0] == TLS_HANDSHAKE {
                let handshake = acceptor.accept(stream);
                let stream = tokio::time::timeout(HEAD_TIMEOUT, handshake).await??;
                return serve_one(stream, peer, face, shutdown).await;
            }
            if !plain {
                return Err("it does not speak TLS".into());
            }
            serve_one(stream, peer, face, shutdown).await
        }
    };
    accept(listener, limits, connection, shutdown).await;
}

/// Takes connections, within the limit, and lets each be served in a task of its own.
async fn accept<F: Future<Output = Ended> + Send + 'static>(
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
            tracing::debug!(%peer, "no place for a connection");
            continue;
        };
        // Small answers follow each other at once; a failure leaves the connection merely slower.
        let _ = stream.set_nodelay(true);
        let connection = connection(stream, peer, shutdown.clone());
        tasks.spawn(async move {
            match place.ended().run_until_cancelled(connection).await {
                Some(Ok(())) => {}
                Some(Err(error)) => tracing::debug!(%peer, error, "an HTTP connection ended early"),
                None => tracing::debug!(%peer, "an HTTP connection made room for another"),
            }
        });
    }
    drop(listener);
    tasks.close();
    if tokio::time::timeout(LINGER, tasks.wait()).await.is_err() {
        tracing::warn!("HTTP answers were cut off by the shutdown");
    }
}

type Ended = Result<(), Box<dyn Error + Send + Sync>>;

/// One connection from its first byte to its last.
async fn serve_one<C: Carrier>(
    carrier: C,
    peer: SocketAddr,
    face: Accepted,
    shutdown: CancellationToken,
) -> Ended {
    let rest = match &face.downloads {
        Some(downloads) => match files(carrier, peer, downloads, &shutdown).await? {
            Next::Closed => return Ok(()),
            Next::Router(rest) => rest,
        },
        None => Rewound::fresh(carrier),
    };
    route(rest, peer, face, shutdown).await
}

/// The part of a connection that is the router's, over HTTP/1.1 or HTTP/2.
async fn route<S>(
    stream: S,
    peer: SocketAddr,
    Accepted { router, bodies, proof, .. }: Accepted,
    shutdown: CancellationToken,
) -> Ended
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
    let shown = proof.clone();
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(ConnectInfo(peer));
        if let Some(proof) = &shown {
            request.extensions_mut().insert(proof.clone());
        }
        let running = requests.begin();
        let answer = service.call(match &bodies {
            Some(bodies) => request.map(|body| Body::new(bodies.limit(peer.ip(), body))),
            None => request.map(Body::new),
        });
        async move {
            answer.await.map(|answer: Response<Body>| answer.map(|body| running.until_end(body)))
        }
    });
    let stream = TokioIo::new(Stalling::new(stream, STALL));
    let mut connection = pin!(builder.serve_connection(stream, service));
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
