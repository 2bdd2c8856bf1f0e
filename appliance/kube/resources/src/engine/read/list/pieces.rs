//! Text in pieces, each of which is freed after it is sent: a list may have many megabytes.

use bytes::Bytes;

/// Capacity of a piece in bytes; its last item may exceed the capacity.
const PIECE_BYTES: usize = 64 * 1024;
/// Size in bytes from which a piece gets no more items, so that its last item mostly fits.
const FULL_BYTES: usize = PIECE_BYTES - 8 * 1024;

/// Writer of a text in pieces.
#[derive(Debug, Default)]
pub struct Pieces {
    full: Vec<Bytes>,
    last: Vec<u8>,
}

impl Pieces {
    /// Returns the buffer to which the next item is appended.
    pub fn room(&mut self) -> &mut Vec<u8> {
        if self.last.len() >= FULL_BYTES {
            let next = Vec::with_capacity(PIECE_BYTES);
            self.full.push(std::mem::replace(&mut self.last, next).into());
        }
        &mut self.last
    }

    /// Returns all pieces in order.
    pub fn into_vec(mut self) -> Vec<Bytes> {
        self.full.push(self.last.into());
        self.full
    }
}

#[cfg(test)]
mod tests {
    use super::{PIECE_BYTES, Pieces};

    #[test]
    fn nothing_is_lost_between_pieces() {
        let mut pieces = Pieces::default();
        let mut whole = Vec::new();
        for number in 0..40_000 {
            let text = format!("{number},");
            pieces.room().extend(text.bytes());
            whole.extend(text.bytes());
        }
        let pieces = pieces.into_vec();
        assert!(pieces.len() > 2 && pieces.iter().all(|piece| piece.len() <= PIECE_BYTES));
        assert_eq!(pieces.concat(), whole);
    }
}
