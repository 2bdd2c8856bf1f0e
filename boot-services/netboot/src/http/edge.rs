//! The listening edge: connections with limits, over HTTP/1.1 and HTTP/2.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
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
use hyper_util::server::graceful::{GracefulConnection, GracefulShutdown};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{Instant, Sleep};
use tokio_util::sync::CancellationToken;

/// Connections at once; further ones wait in the kernel's queue.
pub const MAX_CONNECTIONS: usize = 512;
/// A client sends its request's head within this.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// A client takes something of an answer within this, or loses its connection.
const STALL: Duration = Duration::from_secs(60);
/// Bytes of a request's head, and of an answer that wait for the socket.
const MAX_BUFFER: usize = 256 << 10;
/// Requests at once on one HTTP/2 connection.
const MAX_STREAMS: u32 = 64;
/// How long running answers may take once the server shuts down.
const LINGER: Duration = Duration::from_secs(5);
/// Rest after a failed accept: it fails for want of file descriptors, which others give back.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves `router` until `shutdown`, with the client's address as `ConnectInfo<SocketAddr>`.
/// Running answers get five seconds to end.
pub async fn serve(listener: TcpListener, router: Router, shutdown: CancellationToken) {
    let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let graceful = GracefulShutdown::new();
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
        let connection = connection(stream, peer, router.clone());
        let watched = graceful.watch(connection);
        tokio::spawn(async move {
            if let Err(error) = watched.await {
                tracing::debug!(%peer, error, "an HTTP connection ended early");
            }
            drop(slot);
        });
    }
    drop(listener);
    if tokio::time::timeout(LINGER, graceful.shutdown()).await.is_err() {
        tracing::warn!("HTTP answers were cut off by the shutdown");
    }
}

/// One connection, ready to be driven.
fn connection(
    stream: TcpStream,
    peer: SocketAddr,
    router: Router,
) -> impl GracefulConnection<Error = Box<dyn std::error::Error + Send + Sync>> + Send + 'static {
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
    builder.serve_connection(TokioIo::new(Stalling::new(stream, STALL)), service).into_owned()
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

    #[tokio::test]
    async fn a_write_that_nobody_takes_fails() {
        let (ours, mut theirs) = tokio::io::duplex(1000);
        let mut stream = Stalling::new(ours, Duration::from_millis(200));
        // As long as the other side takes a little now and then, it goes on.
        let slow = tokio::spawn(async move {
            let mut taken = [0; 500];
            for _ in 0..8 {
                theirs.read_exact(&mut taken).await.unwrap();
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            theirs
        });
        stream.write_all(&[0; 4000]).await.unwrap();
        let theirs = slow.await.unwrap();
        let error = stream.write_all(&[0; 4000]).await.unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
        drop(theirs);
    }
}
