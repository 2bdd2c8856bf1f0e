//! The bounded way from the fetcher to whoever reads the image: buffers that are filled from the
//! socket, shared without a copy by everybody who needs the bytes (the sum, the decoder, the disk)
//! and filled again once the last of them is done. A lost fetcher is an error, never an end.

use std::io::{self, BufRead, Read};
use std::sync::Arc;

use tokio::sync::mpsc;

use super::Url;
use crate::disk::{Aligned, MEMORY_ALIGN};

/// One buffer: every piece but the last is full, so that a raw image's lie where direct I/O wants
/// them.
pub(super) const PIECE: usize = 1 << 20;
/// Buffers in flight, all stations together.
pub(super) const PIECES: usize = 12;

const _: () = assert!(PIECE.is_multiple_of(MEMORY_ALIGN));

/// A buffer that is being filled.
pub(super) struct Filling {
    buffer: Aligned,
    filled: usize,
    home: mpsc::Sender<Aligned>,
}

/// A part of the image as served.
#[derive(Clone)]
pub(super) struct Piece(Arc<Filled>);

struct Filled {
    buffer: Aligned,
    length: usize,
    home: mpsc::Sender<Aligned>,
}

impl Filling {
    /// Where the next bytes belong.
    pub(super) fn room(&mut self) -> &mut [u8] {
        &mut self.buffer.bytes_mut()[self.filled..]
    }

    /// So many bytes were put there.
    pub(super) fn add(&mut self, count: usize) {
        self.filled += count;
    }

    /// As many zeros, which there must be room for.
    pub(super) fn add_zeros(&mut self, count: usize) {
        self.room()[..count].fill(0);
        self.add(count);
    }

    pub(super) fn is_full(&self) -> bool {
        self.filled == PIECE
    }

    /// What was put there so far.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer.bytes()[..self.filled]
    }

    pub(super) fn done(mut self) -> Piece {
        // A used buffer's old bytes must not pad the image's last sector.
        let end = self.filled.next_multiple_of(MEMORY_ALIGN);
        self.buffer.bytes_mut()[self.filled..end].fill(0);
        Piece(Arc::new(Filled { buffer: self.buffer, length: self.filled, home: self.home }))
    }
}

impl Piece {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0.buffer.bytes()[..self.0.length]
    }

    /// The bytes and, after the last of them, zeros up to a whole `sector`.
    pub(super) fn padded(&self, sector: usize) -> &[u8] {
        &self.0.buffer.bytes()[..self.0.length.next_multiple_of(sector).min(PIECE)]
    }
}

impl Drop for Filled {
    fn drop(&mut self) {
        // There is room for all of them; when the fetcher is gone the memory just goes.
        let _ = self.home.try_send(std::mem::take(&mut self.buffer));
    }
}

enum Item {
    Data(Piece),
    End,
}

/// The fetcher's end.
pub(super) struct Sink {
    items: mpsc::Sender<Item>,
    spent: mpsc::Receiver<Aligned>,
    home: mpsc::Sender<Aligned>,
    made: usize,
    /// One that is passed on again and again.
    zeros: Option<Piece>,
}

/// The reader's end, which blocks.
pub(super) struct Source {
    items: mpsc::Receiver<Item>,
    current: Option<Piece>,
    used: usize,
    ended: bool,
    /// What is being read, for messages.
    pub(super) url: Url,
}

/// The reader has gone away.
pub(super) struct Gone;

pub(super) fn channel(url: Url) -> (Sink, Source) {
    // All pieces and the end fit, so that what is waited for is always a buffer.
    let (sender, items) = mpsc::channel(PIECES + 1);
    let (home, spent) = mpsc::channel(PIECES);
    let source = Source { items, current: None, used: 0, ended: false, url };
    (Sink { items: sender, spent, home, made: 0, zeros: None }, source)
}

impl Sink {
    /// An empty buffer, as soon as there is one.
    pub(super) async fn buffer(&mut self) -> Filling {
        let spent = match self.spent.try_recv() {
            Err(_) if self.made == PIECES => self.spent.recv().await,
            spent => spent.ok(),
        };
        let buffer = spent.unwrap_or_else(|| {
            self.made += 1;
            Aligned::new(PIECE)
        });
        Filling { buffer, filled: 0, home: self.home.clone() }
    }

    /// A whole piece of zeros.
    pub(super) async fn zeros(&mut self) -> Piece {
        if let Some(zeros) = &self.zeros {
            return zeros.clone();
        }
        let mut filling = self.buffer().await;
        filling.add_zeros(PIECE);
        self.zeros.insert(filling.done()).clone()
    }

    /// Whether nobody reads any more.
    pub(super) fn is_closed(&self) -> bool {
        self.items.is_closed()
    }

    pub(super) async fn data(&self, piece: Piece) -> Result<(), Gone> {
        self.items.send(Item::Data(piece)).await.map_err(|_| Gone)
    }

    pub(super) async fn end(self) -> Result<(), Gone> {
        self.items.send(Item::End).await.map_err(|_| Gone)
    }
}

impl Source {
    /// The first bytes, up to `length`, without consuming them.
    pub(super) fn peek(&mut self, length: usize) -> io::Result<&[u8]> {
        let start = self.fill_buf()?;
        Ok(&start[..start.len().min(length)])
    }

    /// The next piece as it is; `None` at the end. For who has read nothing by bytes.
    pub(super) fn next_piece(&mut self) -> io::Result<Option<Piece>> {
        self.fill_buf()?;
        Ok(self.current.take())
    }
}

impl BufRead for Source {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.current.is_none() && !self.ended {
            match self.items.blocking_recv() {
                Some(Item::Data(piece)) => (self.current, self.used) = (Some(piece), 0),
                Some(Item::End) => self.ended = true,
                None => return Err(io::Error::other("the download was given up")),
            }
        }
        Ok(self.current.as_ref().map(|piece| &piece.bytes()[self.used..]).unwrap_or_default())
    }

    fn consume(&mut self, amount: usize) {
        let Some(piece) = &self.current else { return };
        self.used += amount;
        if self.used >= piece.bytes().len() {
            self.current = None;
        }
    }
}

impl Read for Source {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let available = self.fill_buf()?;
        let count = available.len().min(out.len());
        out[..count].copy_from_slice(&available[..count]);
        self.consume(count);
        Ok(count)
    }
}

#[cfg(test)]
mod tests;
