//! Text of many megabytes, in pieces that are each let go when they are sent.

use bytes::Bytes;

/// Bytes after which a piece is full; the text that fills it may be longer.
const PIECE_BYTES: usize = 64 * 1024;

/// The pieces of a text that is being written.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    full: Vec<Bytes>,
    last: Vec<u8>,
}

impl Pieces {
    /// Where the text goes on.
    pub fn room(&mut self) -> &mut Vec<u8> {
        if self.last.len() >= PIECE_BYTES {
            let next = Vec::with_capacity(self.last.capacity());
            self.full.push(std::mem::replace(&mut self.last, next).into());
        }
        &mut self.last
    }

    /// Whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.full.is_empty() && self.last.is_empty()
    }

    /// The whole text.
    pub fn into_vec(mut self) -> Vec<Bytes> {
        self.full.push(self.last.into());
        self.full
    }
}
