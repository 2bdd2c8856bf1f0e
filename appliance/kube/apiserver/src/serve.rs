//! Server socket: accepts TLS connections with HTTP/2 or HTTP/1.1, limited in number and time.
//!
//! A connection without an authenticated request counts as unauthenticated. Such connections are
//! limited in total, per address and in time ([`UNAUTHENTICATED`], [`AUTHENTICATION_TIMEOUT`]). If
//! no slot is free, a connection of the address with the most connections is closed. Addresses with
//! an authenticated client within the last hour have separate slots. Therefore unauthenticated
//! connections cannot block authenticated clients.

use std::io::Cursor;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::{Extension, Router};
use http_edge::{Lanes, Place};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use rbac::{Limits, Shares, User};
use rustls::ServerConfig;
use tokio::io::{AsyncReadExt as _, Chain, Join, ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::auth::Error;
use crate::filters::Peer;

/// Maximum open connections; further connections wait to be accepted.
pub const MAX_CONNECTIONS: usize = 1024;
/// Maximum connections of authenticated users, in total and per user; above the limit, 429.
pub const USERS: Limits = Limits { total: 1024, each: 512 };
/// Maximum unauthenticated connections, in total and per address. Addresses with a recent
/// authenticated client have separate slots with the same limits.
pub const UNAUTHENTICATED: http_edge::Limits = http_edge::Limits { total: 192, each: 64 };
/// Maximum time for which a connection may stay unauthenticated.
pub const AUTHENTICATION_TIMEOUT: Duration = Duration::from_secs(20);
/// Maximum concurrent requests and watches on one HTTP/2 connection. A controller uses one
/// connection for all its watches.
pub const MAX_STREAMS: u32 = 250;
/// Maximum header bytes of one request.
pub const MAX_HEADER_BYTES: u32 = 32 * 1024;
/// Maximum time from the connection to the end of the TLS handshake, the HTTP/2 preface included. A
/// client on a busy computer needs seconds for its first byte.
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum wait for a request's head on HTTP/1.1; also the idle timeout of a connection.
pub const HEADER_TIMEOUT: Duration = Duration::from_secs(30);
/// Interval of HTTP/2 pings to the client.
const PING_EVERY: Duration = Duration::from_secs(30);
/// Maximum wait for the response to a ping.
const PING_TIMEOUT: Duration = Duration::from_secs(20);
/// Maximum HTTP/2 streams that a client resets before the server has processed them (defense
/// against rapid reset, CVE-2023-44487).
const MAX_EARLY_RESETS: usize = 20;
/// Maximum HTTP/2 streams reset because of client errors; above, the connection is closed.
const MAX_ERROR_RESETS: usize = 1024;
/// HTTP/2 receive windows in bytes, per stream and per connection.
const STREAM_WINDOW: u32 = 256 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;
/// Maximum buffered response bytes of an HTTP/2 stream, small because thousands of streams may be
/// unread, and maximum bytes of a request's head on HTTP/1.1.
const SEND_BUFFER: usize = 64 * 1024;
const HEAD_BUFFER: usize = 64 * 1024;
/// Bytes of the HTTP/2 client preface (RFC 9113 section 3.4).
const HTTP2_PREFACE: usize = 24;
/// Maximum time for running requests and watches to finish after shutdown begins.
pub const GRACE: Duration = Duration::from_secs(2);
/// Delay after a failed accept, such as "out of file descriptors", against a busy loop.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves `router` on `listener` until `shutdown` resolves, then waits up to [`GRACE`] for running
/// requests and closes the remaining connections.
///
/// # Errors
/// Returns an error if the listening socket has failed permanently. A failed connection is not an
/// error of the server.
pub async fn serve(
    listener: TcpListener,
    tls: Arc<ServerConfig>,
    router: Router,
    shutdown: impl Future<Output = ()> + Send,
) -> Result<(), Error> {
    let acceptor = TlsAcceptor::from(tls);
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let (lanes, users) = (Lanes::new(UNAUTHENTICATED), Shares::new(USERS));
    let graceful = GracefulShutdown::new();
    let mut running = JoinSet::new();
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        let (socket, address, permit) = tokio::select! {
            biased;
            () = &mut shutdown => break,
            Some(ended) = running.join_next() => {
                if let Err(error) = ended {
                    tracing::error!(%error, "a connection's task failed");
                }
                continue;
            }
            accepted = accept(&listener, &places) => match accepted {
                Ok(accepted) => accepted,
                Err(error) if is_fatal(&error) => return Err(Error::Accept(error)),
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            },
        };
        let Some(place) = lanes.enter(address) else {
            tracing::debug!(%address, "too many unauthenticated connections");
            continue;
        };
        let connection = Connection {
            address,
            place,
            users: users.clone(),
            lanes: lanes.clone(),
            acceptor: acceptor.clone(),
            router: router.clone(),
            watcher: graceful.watcher(),
            _permit: permit,
        };
        let ended = connection.place.ended();
        running.spawn(async move {
            if ended.run_until_cancelled(connection.run(socket)).await.is_none() {
                tracing::debug!(%address, "an unauthenticated connection made room for another");
            }
        });
    }
    drop(listener);
    let finished = tokio::time::timeout(GRACE, graceful.shutdown()).await;
    tracing::info!(all_finished = finished.is_ok(), "API server stopped");
    Ok(())
}

async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> Result<(TcpStream, IpAddr, OwnedSemaphorePermit), std::io::Error> {
    let permit = places.clone().acquire_owned().await.map_err(std::io::Error::other)?;
    let (socket, from) = listener.accept().await?;
    Ok((socket, from.ip().to_canonical(), permit))
}

/// Returns true if the error means that the listening socket itself has failed, not one connection.
fn is_fatal(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{InvalidInput, NotConnected, Unsupported};
    matches!(error.kind(), InvalidInput | NotConnected | Unsupported)
}

struct Connection {
    address: IpAddr,
    place: Place,
    users: Shares,
    lanes: Lanes,
    acceptor: TlsAcceptor,
    router: Router,
    watcher: Watcher,
    _permit: OwnedSemaphorePermit,
}

impl Connection {
    async fn run(self, socket: TcpStream) {
        // Small events must not wait for the acknowledgment of the previous one.
        if let Err(error) = socket.set_nodelay(true) {
            tracing::debug!(%error, "cannot set TCP_NODELAY");
        }
        let opened = tokio::time::timeout(HANDSHAKE_TIMEOUT, open(&self.acceptor, socket)).await;
        let Opened { stream, builder, user } = match opened {
            Ok(Ok(opened)) => opened,
            Ok(Err(error)) => {
                tracing::debug!(%error, "connection was not opened");
                return;
            }
            Err(_) => {
                tracing::debug!("connection took too long to open");
                return;
            }
        };
        let peer = Arc::new(Peer::new(self.address, self.place, self.users).certified(user));
        let router = self.router.layer(Extension(Arc::clone(&peer)));
        let service = TowerToHyperService::new(router);
        let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
        let connection = connection.into_owned();
        tokio::select! {
            ended = self.watcher.watch(connection) => if let Err(error) = ended {
                let error = stdx::chain(error.as_ref());
                tracing::debug!(error, "connection ended with an error");
            },
            () = stays_unauthenticated(&peer, &self.lanes) => {
                let address = peer.address();
                tracing::debug!(%address, "an unauthenticated connection was closed");
            }
        }
        if !peer.is_unauthenticated() {
            self.lanes.authenticated(peer.address());
        }
        if let Some(next) = peer.next() {
            next.await;
        }
    }
}

/// Returns after [`AUTHENTICATION_TIMEOUT`]; never returns if the client is authenticated then.
async fn stays_unauthenticated(peer: &Peer, lanes: &Lanes) {
    tokio::time::sleep(AUTHENTICATION_TIMEOUT).await;
    if !peer.is_unauthenticated() {
        lanes.authenticated(peer.address());
        std::future::pending::<()>().await;
    }
}

/// TLS stream that first yields the bytes that were already read.
type Rewound = Join<Chain<Cursor<Vec<u8>>, ReadHalf<Tls>>, WriteHalf<Tls>>;
type Tls = TlsStream<TcpStream>;

/// Connection after the TLS handshake.
struct Opened {
    stream: Rewound,
    builder: Builder<TokioExecutor>,
    /// User of the client's certificate; `None` without a client certificate.
    user: Option<User>,
}

/// Does the TLS handshake. For HTTP/2, also reads the client preface, for which hyper has no
/// timeout. For HTTP/1.1, hyper's header timeout applies.
async fn open(acceptor: &TlsAcceptor, socket: TcpStream) -> Result<Opened, std::io::Error> {
    let stream = acceptor.accept(socket).await?;
    let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2".as_slice());
    // The handshake has verified the certificate; otherwise it would have failed.
    let certificate = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first());
    let user = certificate.and_then(|certificate| rbac::certificate::user(certificate));
    let (mut reader, writer) = tokio::io::split(stream);
    let mut first = vec![0; if is_http2 { HTTP2_PREFACE } else { 0 }];
    reader.read_exact(&mut first).await?;
    let stream = tokio::io::join(Cursor::new(first).chain(reader), writer);
    let builder = builder();
    let builder = if is_http2 { builder.http2_only() } else { builder.http1_only() };
    Ok(Opened { stream, builder, user })
}

fn builder() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_buf_size(HEAD_BUFFER);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_STREAMS)
        .max_header_list_size(MAX_HEADER_BYTES)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .adaptive_window(false)
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_TIMEOUT)
        .max_pending_accept_reset_streams(MAX_EARLY_RESETS)
        .max_local_error_reset_streams(MAX_ERROR_RESETS)
        .max_send_buf_size(SEND_BUFFER);
    builder
}
