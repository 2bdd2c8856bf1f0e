//! The socket: TLS connections, counted and timed, each speaking HTTP/2 or HTTP/1.1.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::auth::Error;

/// Connections open at one time; a further one waits to be accepted.
pub const MAX_CONNECTIONS: usize = 512;
/// Requests and watches one HTTP/2 connection may have open (a controller's watches share one).
pub const MAX_STREAMS: u32 = 250;
/// Header bytes of one request.
pub const MAX_HEADER_BYTES: u32 = 32 * 1024;
/// Longest TLS handshake.
pub const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest wait for a request's head on HTTP/1.1, and so for the next one on an idle connection.
pub const HEADER_TIMEOUT: Duration = Duration::from_secs(30);
/// How often an HTTP/2 peer is asked whether it is still there.
const PING_EVERY: Duration = Duration::from_secs(30);
/// How long it may take to say so.
const PING_TIMEOUT: Duration = Duration::from_secs(20);
/// HTTP/2 streams the peer may reset before we had a look (rapid-reset defence).
const MAX_EARLY_RESETS: usize = 20;
/// HTTP/2 streams reset for the peer's errors before the connection goes.
const MAX_ERROR_RESETS: usize = 1024;
/// Bytes in flight towards us per stream and per connection.
const STREAM_WINDOW: u32 = 256 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;
/// Bytes buffered per stream towards the client, and of a request's head on HTTP/1.1.
const SEND_BUFFER: usize = 256 * 1024;
const HEAD_BUFFER: usize = 64 * 1024;
/// How long requests may still run once a shutdown was asked for; watches end then too.
pub const GRACE: Duration = Duration::from_secs(2);
/// Pause after a failed accept (out of file descriptors, say), so that it does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves `router` on `listener` until `shutdown` resolves, then lets running requests finish for
/// [`GRACE`] and cuts what is left.
///
/// # Errors
/// When the socket is gone for good. A failed connection is not an error of the server.
pub async fn serve(
    listener: TcpListener,
    tls: Arc<ServerConfig>,
    router: Router,
    shutdown: impl Future<Output = ()> + Send,
) -> Result<(), Error> {
    let acceptor = TlsAcceptor::from(tls);
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let graceful = GracefulShutdown::new();
    let mut running = JoinSet::new();
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        let (socket, permit) = tokio::select! {
            biased;
            () = &mut shutdown => break,
            Some(_) = running.join_next() => continue,
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
        let connection = Connection {
            acceptor: acceptor.clone(),
            router: router.clone(),
            watcher: graceful.watcher(),
            _permit: permit,
        };
        running.spawn(connection.run(socket));
    }
    drop(listener);
    let finished = tokio::time::timeout(GRACE, graceful.shutdown()).await;
    tracing::info!(all_finished = finished.is_ok(), "API server stopped");
    Ok(())
}

async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> Result<(TcpStream, OwnedSemaphorePermit), std::io::Error> {
    let permit = places.clone().acquire_owned().await.map_err(std::io::Error::other)?;
    let (socket, _) = listener.accept().await?;
    Ok((socket, permit))
}

/// The listening socket itself is no longer one.
fn is_fatal(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{InvalidInput, NotConnected, Unsupported};
    matches!(error.kind(), InvalidInput | NotConnected | Unsupported)
}

struct Connection {
    acceptor: TlsAcceptor,
    router: Router,
    watcher: Watcher,
    _permit: OwnedSemaphorePermit,
}

impl Connection {
    async fn run(self, socket: TcpStream) -> Result<(), Infallible> {
        // Small events must not wait for an acknowledgement of the one before.
        if let Err(error) = socket.set_nodelay(true) {
            tracing::debug!(%error, "cannot set TCP_NODELAY");
        }
        let handshake = tokio::time::timeout(HANDSHAKE_TIMEOUT, self.acceptor.accept(socket));
        let stream = match handshake.await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => {
                tracing::debug!(%error, "TLS handshake failed");
                return Ok(());
            }
            Err(_) => {
                tracing::debug!("TLS handshake took too long");
                return Ok(());
            }
        };
        let builder = builder();
        let service = TowerToHyperService::new(self.router);
        let connection = builder.serve_connection(TokioIo::new(stream), service).into_owned();
        if let Err(error) = self.watcher.watch(connection).await {
            tracing::debug!(error = stdx::chain(error.as_ref()), "connection ended with an error");
        }
        Ok(())
    }
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
