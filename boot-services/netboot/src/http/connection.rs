//! Handles one connection. Requests for files are answered here; with the first other request,
//! hyper and the router take over the connection permanently.

use std::io::{self, Write as _};
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::content::{Record, ResponseHead};
use super::downloads::{Downloads, Target};
use super::head::{Head, MAX_HEAD, Parsed, parse};
use super::send_file::{SendFile, unstalled};
use crate::files::OpenFile;

/// Time in which a client must send a request's head, also on a kept-alive connection.
pub(super) const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// Initial buffer for a request's head, in bytes; enough for boot ROMs and downloaders.
const USUAL_HEAD: usize = 2 << 10;
/// Initial buffer for a response's head, in bytes.
const USUAL_ANSWER: usize = 320;

/// Result of serving files on a connection.
pub(super) enum Next<C> {
    /// The connection has ended.
    Closed,
    /// A request for something else arrived. hyper gets the connection with all bytes that were
    /// read.
    Router(RewoundStream<C>),
}

/// Answers requests for files until the connection ends or another request arrives.
///
/// # Errors
/// The client disconnected or took no bytes for a minute, or a file became shorter while it was
/// sent.
pub(super) async fn files<C: SendFile>(
    mut stream: C,
    peer: SocketAddr,
    downloads: &Downloads,
    shutdown: &CancellationToken,
) -> io::Result<Next<C>> {
    let peer = peer.ip().to_canonical();
    let mut front = BytesMut::with_capacity(USUAL_HEAD);
    let mut until = Instant::now() + HEAD_TIMEOUT;
    loop {
        let target = match parse(&front) {
            Parsed::Partial => None,
            Parsed::Request(head) => match downloads.find(&head.path, peer) {
                Some(target) => Some((head, target)),
                None => return Ok(Next::Router(RewoundStream { front, inner: stream })),
            },
            Parsed::Other => return Ok(Next::Router(RewoundStream { front, inner: stream })),
        };
        let Some((head, target)) = target else {
            if !more(&mut stream, &mut front, until, shutdown).await? {
                return Ok(Next::Closed);
            }
            continue;
        };
        let keep_alive = head.keep_alive && !shutdown.is_cancelled();
        answer(&mut stream, downloads, peer, &head, &target, keep_alive).await?;
        if !keep_alive {
            unstalled(stream.shutdown()).await?;
            return Ok(Next::Closed);
        }
        let length = head.length;
        front.advance(length);
        until = Instant::now() + HEAD_TIMEOUT;
    }
}

/// Reads until the buffer may contain a complete head. Returns false if the client sends none.
async fn more<C: SendFile>(
    stream: &mut C,
    front: &mut BytesMut,
    until: Instant,
    shutdown: &CancellationToken,
) -> io::Result<bool> {
    let reading = async {
        loop {
            front.reserve(USUAL_HEAD);
            let old = front.len();
            let count = stream.read_buf(front).await?;
            // The head is parsed line by line, not byte by byte as a slow client sends it.
            if count == 0 || front[old..].contains(&b'\n') || front.len() >= MAX_HEAD {
                return Ok(count > 0);
            }
        }
    };
    tokio::select! {
        more = tokio::time::timeout_at(until, reading) => more.unwrap_or(Ok(false)),
        () = shutdown.cancelled() => Ok(false),
    }
}

async fn answer<C: SendFile>(
    stream: &mut C,
    downloads: &Downloads,
    peer: IpAddr,
    request: &Head<'_>,
    target: &Target,
    keep_alive: bool,
) -> io::Result<()> {
    let mut record = Record::new(downloads.services.observer.clone(), peer, &request.path);
    let (head, file) = match downloads.open(target, peer) {
        Ok(OpenFile { file, size, tag }) => {
            let head = ResponseHead::of(request.conditions, size, &tag.to_string());
            let head = if request.wants_holes { head.with_holes(&file, size) } else { head };
            (head, Some(file))
        }
        Err(status) => (ResponseHead::none(status), None),
    };
    record.status = head.status;
    let bytes = encode(&head, keep_alive)?;
    match file {
        Some(file) if request.wants_body && head.length > 0 => {
            let part = head.first..head.first + head.length;
            stream.send(bytes, file, part, &mut record.bytes).await
        }
        _ => {
            unstalled(stream.write_all(&bytes)).await?;
            unstalled(stream.flush()).await
        }
    }
}

/// Returns the bytes of the response's head.
fn encode(head: &ResponseHead, keep_alive: bool) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(USUAL_ANSWER);
    // `Display` of a status is "200 OK".
    write!(bytes, "HTTP/1.1 {}\r\n", head.status)?;
    write!(bytes, "date: {}\r\n", httpdate::fmt_http_date(SystemTime::now()))?;
    for (name, value) in &head.headers {
        write!(bytes, "{name}: {value}\r\n")?;
    }
    if !keep_alive {
        bytes.extend_from_slice(b"connection: close\r\n");
    }
    bytes.extend_from_slice(b"\r\n");
    Ok(bytes)
}

/// Connection that first returns the bytes in `front`, which were already read.
pub(super) struct RewoundStream<C> {
    front: BytesMut,
    inner: C,
}

impl<C> RewoundStream<C> {
    /// Wraps a connection from which nothing was read.
    pub(super) fn fresh(inner: C) -> Self {
        Self { front: BytesMut::new(), inner }
    }
}

impl<C: AsyncRead + Unpin> AsyncRead for RewoundStream<C> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.front.is_empty() {
            return Pin::new(&mut self.inner).poll_read(cx, buffer);
        }
        let count = self.front.len().min(buffer.remaining());
        buffer.put_slice(&self.front.split_to(count));
        Poll::Ready(Ok(()))
    }
}

impl<C: AsyncWrite + Unpin> AsyncWrite for RewoundStream<C> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::ops::Range;
    use std::sync::Arc;

    use tokio::io::DuplexStream;
    use tokio::time::{Duration, sleep};

    use super::*;
    use crate::{Files, Services};

    impl SendFile for DuplexStream {
        async fn send(
            &mut self,
            head: Vec<u8>,
            _: File,
            _: Range<u64>,
            _: &mut u64,
        ) -> io::Result<()> {
            self.write_all(&head).await
        }
    }

    /// Serves an empty folder over `stream`; the test clock advances only while all tasks wait.
    async fn serve(stream: DuplexStream) -> io::Result<Next<DuplexStream>> {
        let (plans, observer) = (Arc::new(()), Arc::new(()));
        let files = Files::new("/nonexistent");
        let downloads = Downloads::boot(Services { files, plans, observer });
        let peer = SocketAddr::from(([10, 77, 0, 11], 1024));
        super::files(stream, peer, &downloads, &CancellationToken::new()).await
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_that_trickles_in_is_waited_for_only_so_long() {
        let (ours, mut theirs) = tokio::io::duplex(1 << 10);
        let start = Instant::now();
        let trickle = async {
            let mut line: &[u8] = b"GET /agent/a HTTP/1.1\r\n";
            while theirs.write_all(line).await.is_ok() {
                line = b"a: b\r\n";
                sleep(Duration::from_secs(7)).await;
            }
        };
        let (next, ()) = tokio::join!(serve(ours), trickle);
        assert!(matches!(next, Ok(Next::Closed)));
        assert!((30..40).contains(&start.elapsed().as_secs()), "{:?}", start.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_takes_no_answer_loses_its_connection() {
        let (ours, mut theirs) = tokio::io::duplex(50);
        let ask = theirs.write_all(b"GET /agent/a HTTP/1.1\r\nhost: box\r\n\r\n");
        let (next, asked) = tokio::join!(serve(ours), ask);
        asked.unwrap();
        assert_eq!(next.err().unwrap().kind(), io::ErrorKind::TimedOut);
    }
}
