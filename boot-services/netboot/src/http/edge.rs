//! The listening edge: connections with limits, plain or over TLS, HTTP/1.1 and HTTP/2.

use std::error::Error;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{Instant, Sleep};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::carrier::{Carrier, STALL};
use super::connection::{HEAD_TIMEOUT, Next, Rewound, files};
use super::downloads::Downloads;

/// Connections at once; further ones wait in the kernel's queue.
pub const MAX_CONNECTIONS: usize = 512;
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
    downloads: Option<Downloads>,
}

impl From<Router> for Face {
    fn from(router: Router) -> Self {
        Self { router, downloads: None }
    }
}

impl Face {
    /// A router whose files go out by the shortest way. The router must answer their paths too:
    /// over HTTP/2, and on a connection that asked for something else before.
    pub fn with_downloads(router: Router, downloads: Downloads) -> Self {
        Self { router, downloads: Some(downloads) }
    }
}

/// Serves `face` until `shutdown`, with the client's address as `ConnectInfo<SocketAddr>`.
/// Running answers get five seconds to end.
pub async fn serve(listener: TcpListener, face: impl Into<Face>, shutdown: CancellationToken) {
    let face = face.into();
    let connection = move |stream, peer, shutdown| serve_one(stream, peer, face.clone(), shutdown);
    accept(listener, connection, shutdown).await;
}

/// As [`serve`], over TLS. A client finishes its handshake within half a minute.
pub async fn serve_tls(
    listener: TcpListener,
    tls: Arc<rustls::ServerConfig>,
    face: impl Into<Face>,
    shutdown: CancellationToken,
) {
    let (face, acceptor) = (face.into(), TlsAcceptor::from(tls));
    let connection = move |stream, peer, shutdown| {
        let (face, handshake) = (face.clone(), acceptor.accept(stream));
        async move {
            let stream = tokio::time::timeout(HEAD_TIMEOUT, handshake).await??;
            serve_one(stream, peer, face, shutdown).await
        }
    };
    accept(listener, connection, shutdown).await;
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
    let connection = move |stream: TcpStream, peer, shutdown| {
        let (face, acceptor) = (face.clone(), acceptor.clone());
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
    accept(listener, connection, shutdown).await;
}

/// Takes connections, within the limit, and lets each be served in a task of its own.
async fn accept<F: Future<Output = Ended> + Send + 'static>(
    listener: TcpListener,
    connection: impl Fn(TcpStream, SocketAddr, CancellationToken) -> F,
    shutdown: CancellationToken,
) {
    let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let tasks = TaskTracker::new();
    loop {
        let accept = async {
            // The semaphore is never closed.
            let slot = slots.clone().acquire_owned().await.ok();
            (slot, listener.accept().await)
        };
        let (slot, accepted) = tokio::select! {
            () = shutdown.cancelled() => break,
            accepted = accept => accepted,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "accepting an HTTP connection failed");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        // Small answers follow each other at once; a failure leaves the connection merely slower.
        let _ = stream.set_nodelay(true);
        let connection = connection(stream, peer, shutdown.clone());
        tasks.spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%peer, error, "an HTTP connection ended early");
            }
            drop(slot);
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
    face: Face,
    shutdown: CancellationToken,
) -> Ended {
    let rest = match &face.downloads {
        Some(downloads) => match files(carrier, peer, downloads, &shutdown).await? {
            Next::Closed => return Ok(()),
            Next::Router(rest) => rest,
        },
        None => Rewound::fresh(carrier),
    };
    route(rest, peer, face.router, shutdown).await
}

/// The part of a connection that is the router's, over HTTP/1.1 or HTTP/2.
async fn route<S>(stream: S, peer: SocketAddr, router: Router, shutdown: CancellationToken) -> Ended
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
    let service = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(ConnectInfo(peer));
        service.call(request.map(Body::new))
    });
    let stream = TokioIo::new(Stalling::new(stream, STALL));
    let mut connection = pin!(builder.serve_connection(stream, service));
    tokio::select! {
        ended = connection.as_mut() => return ended,
        () = shutdown.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    connection.await
}

/// A stream whose writes fail when the other side takes nothing for `limit`, so that a machine
/// that was switched off in the middle of an image does not hold its connection and file open.
struct Stalling<S> {
    stream: S,
    limit: Duration,
    timer: Pin<Box<Sleep>>,
    waiting: bool,
}

impl<S> Stalling<S> {
    fn new(stream: S, limit: Duration) -> Self {
        Self { stream, limit, timer: Box::pin(tokio::time::sleep(limit)), waiting: false }
    }

    /// Let `result` through, unless it has been pending for too long.
    fn limited<T>(
        &mut self,
        cx: &mut Context<'_>,
        result: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if result.is_ready() {
            self.waiting = false;
            return result;
        }
        if !self.waiting {
            self.waiting = true;
            self.timer.as_mut().reset(Instant::now() + self.limit);
        }
        self.timer.as_mut().poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Stalling<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Stalling<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.limited(cx, result)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write_vectored(cx, parts);
        self.limited(cx, result)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.stream).poll_flush(cx);
        self.limited(cx, result)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.limited(cx, result)
    }
}

#[cfg(test)]
mod tests {
    use super::Stalling;
    use std::time::Duration;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::time::Instant;

    #[tokio::test(start_paused = true)]
    async fn a_write_that_nobody_takes_fails() {
        const LIMIT: Duration = Duration::from_millis(200);
        let (ours, mut theirs) = tokio::io::duplex(1000);
        let mut stream = Stalling::new(ours, LIMIT);
        // As long as the other side takes a little now and then, it goes on.
        let slow = tokio::spawn(async move {
            let mut taken = [0; 500];
            for _ in 0..8 {
                theirs.read_exact(&mut taken).await.unwrap();
                tokio::time::sleep(LIMIT - Duration::from_millis(1)).await;
            }
            theirs
        });
        stream.write_all(&[0; 4000]).await.unwrap();
        let theirs = slow.await.unwrap();
        let begun = Instant::now();
        let error = stream.write_all(&[0; 4000]).await.unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
        assert_eq!(begun.elapsed(), LIMIT);
        drop(theirs);
    }
}
