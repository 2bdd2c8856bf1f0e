//! One line between the task of a watch and the connection that takes it: made when the connection
//! wants it, and given out in pieces.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use axum::body::HttpBody;
use bytes::Bytes;
use http_body::Frame;
use tokio::sync::Notify;

use super::super::counted::PIECE_BYTES;
use crate::budget::Held;

/// A line, and the bytes that it is counted as.
pub(super) struct Line {
    pub text: Vec<u8>,
    taken: usize,
    pub held: Option<Held>,
}

impl Line {
    pub fn new(text: Vec<u8>, held: Option<Held>) -> Self {
        Self { text, taken: 0, held }
    }
}

/// Writes lines.
pub(super) struct Writer {
    shared: Arc<Shared>,
    stall: Duration,
}

/// The lines as a body.
pub(super) struct Lines(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// Rung when a piece is taken, a line is wanted, or the reader has gone.
    changed: Notify,
}

#[derive(Default)]
struct State {
    line: Option<Line>,
    reader: Option<Waker>,
    is_wanted: bool,
    /// Pieces that were taken.
    pieces: u64,
    end: Option<End>,
    reader_has_gone: bool,
}

/// End of the body.
#[derive(Debug, Clone, Copy)]
enum End {
    /// After the last line.
    Whole,
    /// Within a line.
    Cut,
}

/// Why a body ends within a line.
#[derive(Debug)]
struct Stalled;

impl fmt::Display for Stalled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the client did not read its watch")
    }
}

impl std::error::Error for Stalled {}

/// A writer and what reads it. A counted line of which nothing is taken for the time of `stall`
/// ends both.
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
    /// True if a line is wanted now.
    pub fn is_wanted(&self) -> bool {
        self.shared.state().is_wanted
    }

    /// Waits until a line is wanted; false if none will be: the client has gone, or left a line
    /// unread for too long.
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

    /// Waits until the reader has gone.
    pub async fn closed(&self) {
        while !self.shared.state().reader_has_gone {
            self.shared.changed.notified().await;
        }
    }

    /// Gives the line that was wanted.
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
