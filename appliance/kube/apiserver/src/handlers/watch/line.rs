//! Channel for one line from the task of a watch to its connection. The task makes a line only if
//! the connection can take one; the line is sent in pieces.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use axum::body::HttpBody;
use bytes::Bytes;
use http_body::Frame;
use tokio::sync::Notify;

use crate::budget::HeldBytes;
use crate::wire::counted::PIECE_BYTES;

/// Line of a watch, with the counter of its bytes if they are counted.
pub(super) struct Line {
    pub text: Vec<u8>,
    taken: usize,
    pub held: Option<HeldBytes>,
}

impl Line {
    pub fn new(text: Vec<u8>, held: Option<HeldBytes>) -> Self {
        Self { text, taken: 0, held }
    }
}

/// Sending half of the channel, used by the task of a watch.
pub(super) struct Writer {
    shared: Arc<Shared>,
    stall: Duration,
}

/// Receiving half of the channel, which is the response body.
pub(super) struct Lines(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// Notified if the reader takes a piece, requests a line or is dropped.
    changed: Notify,
}

#[derive(Default)]
struct State {
    line: Option<Line>,
    reader: Option<Waker>,
    is_wanted: bool,
    /// Number of pieces that the reader has taken so far.
    pieces: u64,
    end: Option<End>,
    reader_has_gone: bool,
}

/// End of the response body.
#[derive(Debug, Clone, Copy)]
enum End {
    /// The body ends after a complete line.
    Whole,
    /// The body ends inside a line, with the error [`Stalled`].
    Cut,
}

/// Error that ends the body inside a line, because the client read nothing for too long.
#[derive(Debug)]
struct Stalled;

impl fmt::Display for Stalled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the client did not read its watch")
    }
}

impl std::error::Error for Stalled {}

/// Returns both halves of a channel. The channel ends if no piece of a counted line is read for the
/// time `stall`.
pub(super) fn pair(stall: Duration) -> (Writer, Lines) {
    let shared = Arc::<Shared>::default();
    (Writer { shared: Arc::clone(&shared), stall }, Lines(shared))
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Writer {
    /// Returns true if the reader requests a line now.
    pub fn is_wanted(&self) -> bool {
        self.shared.state().is_wanted
    }

    /// Waits until the reader requests a line, and returns true. Returns false if the client
    /// disconnected or left a line unread for too long.
    pub async fn wanted(&mut self) -> bool {
        loop {
            let (before, counted) = {
                let state = self.shared.state();
                if state.reader_has_gone {
                    return false;
                }
                if state.is_wanted {
                    return true;
                }
                let counted = state.line.as_ref().is_some_and(|line| line.held.is_some());
                (state.pieces, counted)
            };
            let changed = self.shared.changed.notified();
            if !counted {
                changed.await;
            } else if tokio::time::timeout(self.stall, changed).await.is_err() {
                let mut state = self.shared.state();
                if state.pieces == before && !state.is_wanted {
                    state.line = None;
                    state.end = Some(End::Cut);
                    return false;
                }
            }
        }
    }

    /// Waits until the reader is dropped, because the client disconnected.
    pub async fn closed(&self) {
        while !self.shared.state().reader_has_gone {
            self.shared.changed.notified().await;
        }
    }

    /// Passes the requested line to the reader.
    pub fn write(&mut self, line: Line) {
        let mut state = self.shared.state();
        state.line = Some(line);
        state.is_wanted = false;
        let reader = state.reader.take();
        drop(state);
        if let Some(reader) = reader {
            reader.wake();
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        state.end.get_or_insert(End::Whole);
        let reader = state.reader.take();
        drop(state);
        if let Some(reader) = reader {
            reader.wake();
        }
    }
}

impl HttpBody for Lines {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let mut state = self.0.state();
        if let Some(line) = &mut state.line {
            let rest = &line.text[line.taken..];
            let piece = Bytes::copy_from_slice(&rest[..rest.len().min(PIECE_BYTES)]);
            line.taken += piece.len();
            if line.taken == line.text.len() {
                state.line = None;
            }
            state.pieces += 1;
            drop(state);
            self.0.changed.notify_one();
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        match state.end {
            Some(End::Whole) => Poll::Ready(None),
            Some(End::Cut) => {
                state.end = Some(End::Whole);
                Poll::Ready(Some(Err(axum::Error::new(Stalled))))
            }
            None => {
                state.reader = Some(context.waker().clone());
                state.is_wanted = true;
                drop(state);
                self.0.changed.notify_one();
                Poll::Pending
            }
        }
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.reader_has_gone = true;
        state.line = None;
        drop(state);
        self.0.changed.notify_one();
    }
}

#[cfg(test)]
mod tests;
