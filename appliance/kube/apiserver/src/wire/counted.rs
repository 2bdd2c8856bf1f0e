//! Bodies whose bytes are counted: of a request until the response is made, of a response until the
//! connection has taken the bytes.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use axum::body::{Body, HttpBody};
use bytes::{Buf as _, Bytes};
use http_body::{Frame, SizeHint};

use crate::budget::HeldBytes;

/// Maximum bytes of a large body passed to the connection at once, because bytes in its buffers can
/// no longer be dropped.
pub const PIECE_BYTES: usize = 16 * 1024;
/// Maximum size in bytes of a frame that is passed to the connection unchanged.
const FRAME_BYTES: usize = 64 * 1024;

/// Request body. Its bytes stay counted as long as a clone of `held` exists.
pub struct CountedRequest {
    body: Body,
    held: Arc<Mutex<HeldBytes>>,
}

/// Error: the body would exceed the limit for bytes of requests in memory.
#[derive(Debug)]
pub struct TooManyBytes;

impl fmt::Display for TooManyBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("too many bytes of requests are in memory")
    }
}

impl std::error::Error for TooManyBytes {}

impl TooManyBytes {
    /// Returns true if [`TooManyBytes`] is `error` or one of its causes.
    pub fn caused(error: &(dyn std::error::Error + 'static)) -> bool {
        let mut causes = std::iter::successors(Some(error), |error| error.source());
        causes.any(|cause| cause.is::<Self>())
    }
}

impl CountedRequest {
    pub fn new(body: Body, held: Arc<Mutex<HeldBytes>>) -> Self {
        Self { body, held }
    }
}

impl HttpBody for CountedRequest {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let Some(frame) = ready!(Pin::new(&mut self.body).poll_frame(context)) else {
            return Poll::Ready(None);
        };
        let bytes = frame.as_ref().ok().and_then(Frame::data_ref).map_or(0, Bytes::len);
        let fits = self.held.lock().unwrap_or_else(PoisonError::into_inner).take(bytes);
        Poll::Ready(Some(if fits { frame } else { Err(axum::Error::new(TooManyBytes)) }))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Response body, whose bytes are all counted at first.
pub struct CountedResponse {
    body: Body,
    /// Rest of a large frame, sent as copied pieces. Otherwise the connection's buffers would keep
    /// the whole frame in memory until its last byte is sent.
    large: Bytes,
    large_bytes: usize,
    held: HeldBytes,
}

impl CountedResponse {
    /// Wraps `body`. The bytes of `body` must already be counted in `held`.
    pub fn new(body: Body, held: HeldBytes) -> Self {
        Self { body, large: Bytes::new(), large_bytes: 0, held }
    }

    fn piece(&mut self) -> Bytes {
        let piece = Bytes::copy_from_slice(&self.large[..self.large.len().min(PIECE_BYTES)]);
        self.large.advance(piece.len());
        if self.large.is_empty() {
            self.large = Bytes::new();
            self.held.give_back(self.large_bytes);
        }
        piece
    }
}

impl HttpBody for CountedResponse {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.large.is_empty() {
            let Some(frame) = ready!(Pin::new(&mut self.body).poll_frame(context)) else {
                return Poll::Ready(None);
            };
            let data = match frame.map(Frame::into_data) {
                Ok(Ok(data)) => data,
                Ok(Err(other)) => return Poll::Ready(Some(Ok(other))),
                Err(error) => return Poll::Ready(Some(Err(error))),
            };
            if data.len() <= FRAME_BYTES {
                self.held.give_back(data.len());
                return Poll::Ready(Some(Ok(Frame::data(data))));
            }
            self.large_bytes = data.len();
            self.large = data;
        }
        Poll::Ready(Some(Ok(Frame::data(self.piece()))))
    }

    fn is_end_stream(&self) -> bool {
        self.large.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        match self.body.size_hint().exact() {
            Some(rest) => SizeHint::with_exact(rest + self.large.len() as u64),
            None => SizeHint::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use http_body_util::BodyExt as _;

    use super::{CountedResponse, FRAME_BYTES, HttpBody as _, PIECE_BYTES};
    use crate::budget::{Budget, ByteLimits};

    #[tokio::test]
    async fn a_large_answer_goes_out_in_pieces_and_counts_to_its_end() {
        let text: Vec<u8> = (0..5 * FRAME_BYTES).map(|at| at as u8).collect();
        let budget = Budget::new(ByteLimits { total: 1 << 20, each: 1 << 20, reserve: 0 });
        let mut held = budget.enter("a").unwrap();
        assert!(held.take(text.len()));
        let mut body = CountedResponse::new(Body::from(text.clone()), held);
        let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!(first.len(), PIECE_BYTES);
        assert_eq!(budget.total(), text.len(), "all of it is there still");
        assert_eq!(body.size_hint().exact(), Some((text.len() - PIECE_BYTES) as u64));
        let rest = body.collect().await.unwrap().to_bytes();
        assert_eq!([first, rest].concat(), text);
        assert_eq!(budget.total(), 0);
    }
}
