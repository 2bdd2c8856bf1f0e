//! Stream with a time limit for writes.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// Stream whose writes fail if the peer takes no bytes for `limit`. A machine that was switched off
/// during an image download then does not keep its connection and file open.
pub(super) struct WriteTimeout<S> {
    stream: S,
    limit: Duration,
    timer: Pin<Box<Sleep>>,
    waiting: bool,
}

impl<S> WriteTimeout<S> {
    pub(super) fn new(stream: S, limit: Duration) -> Self {
        Self { stream, limit, timer: Box::pin(tokio::time::sleep(limit)), waiting: false }
    }

    /// Returns `result`, or an error if writing has been pending for too long.
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

impl<S: AsyncRead + Unpin> AsyncRead for WriteTimeout<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteTimeout<S> {
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
    use super::WriteTimeout;
    use std::time::Duration;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::time::Instant;

    #[tokio::test(start_paused = true)]
    async fn a_write_that_nobody_takes_fails() {
        const LIMIT: Duration = Duration::from_millis(200);
        let (ours, mut theirs) = tokio::io::duplex(1000);
        let mut stream = WriteTimeout::new(ours, LIMIT);
        // The stream continues as long as the peer takes some bytes now and then.
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
