//! Bounded channel from the download to the reader of the image. The download fills buffers from
//! the socket. Checksum, decoder and disk share a buffer without a copy. A buffer is reused after
//! its last user drops it. An aborted download is a read error, never the end of the image.

use std::io::{self, BufRead, Read};
use std::sync::Arc;

use tokio::sync::mpsc;

use super::Url;
use crate::disks::disk::{Aligned, MEMORY_ALIGN};

/// Size of a buffer in bytes. All pieces except the last are full, so that pieces of a raw image
/// are aligned for direct I/O.
pub(super) const PIECE: usize = 1 << 20;
/// Maximum number of buffers of a channel, all users together.
pub(super) const PIECES: usize = 12;

const _: () = assert!(PIECE.is_multiple_of(MEMORY_ALIGN));

/// Buffer that is being filled.
pub(super) struct Filling {
    buffer: Aligned,
    filled: usize,
    home: mpsc::Sender<Aligned>,
}

/// Full or last buffer of the stream, shared by its users.
#[derive(Clone)]
pub(super) struct Piece(Arc<Filled>);

struct Filled {
    buffer: Aligned,
    length: usize,
    home: mpsc::Sender<Aligned>,
}

impl Filling {
    /// Returns the free part of the buffer.
    pub(super) fn room(&mut self) -> &mut [u8] {
        &mut self.buffer.bytes_mut()[self.filled..]
    }

    /// Marks the first `count` bytes of [`Filling::room`] as filled.
    pub(super) fn add(&mut self, count: usize) {
        self.filled += count;
    }

    /// Appends `count` zeros. Panics if they do not fit.
    pub(super) fn add_zeros(&mut self, count: usize) {
        self.room()[..count].fill(0);
        self.add(count);
    }

    pub(super) fn is_full(&self) -> bool {
        self.filled == PIECE
    }

    /// Returns the filled part of the buffer.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer.bytes()[..self.filled]
    }

    pub(super) fn done(mut self) -> Piece {
        // A reused buffer's old bytes must not pad the image's last sector.
        let end = self.filled.next_multiple_of(MEMORY_ALIGN);
        self.buffer.bytes_mut()[self.filled..end].fill(0);
        Piece(Arc::new(Filled { buffer: self.buffer, length: self.filled, home: self.home }))
    }
}

impl Piece {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0.buffer.bytes()[..self.0.length]
    }

    /// Returns the bytes, padded with zeros to a multiple of `sector` bytes.
    pub(super) fn padded(&self, sector: usize) -> &[u8] {
        &self.0.buffer.bytes()[..self.0.length.next_multiple_of(sector).min(PIECE)]
    }
}

impl Drop for Filled {
    fn drop(&mut self) {
        // The channel has space for all buffers. If the download has ended, the memory is freed.
        let _ = self.home.try_send(std::mem::take(&mut self.buffer));
    }
}

enum Item {
    Data(Piece),
    End,
}

/// Sending end of the channel, for the download.
pub(super) struct Sink {
    items: mpsc::Sender<Item>,
    spent: mpsc::Receiver<Aligned>,
    home: mpsc::Sender<Aligned>,
    made: usize,
    /// Piece of zeros, shared by all holes.
    zeros: Option<Piece>,
}

/// Receiving end of the channel, for a blocking reader.
pub(super) struct Source {
    items: mpsc::Receiver<Item>,
    current: Option<Piece>,
    used: usize,
    ended: bool,
    /// URL of the stream, for messages.
    pub(super) url: Url,
}

/// Error of a send after the receiving end was dropped.
pub(super) struct Gone;

pub(super) fn channel(url: Url) -> (Sink, Source) {
    // The channel has space for all pieces and the end, so that a send never waits; only
    // [`Sink::buffer`] waits.
    let (sender, items) = mpsc::channel(PIECES + 1);
    let (home, spent) = mpsc::channel(PIECES);
    let source = Source { items, current: None, used: 0, ended: false, url };
    (Sink { items: sender, spent, home, made: 0, zeros: None }, source)
}

impl Sink {
    /// Returns an empty buffer. Waits while all [`PIECES`] buffers are in use.
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

    /// Returns a full piece of zeros, always the same.
    pub(super) async fn zeros(&mut self) -> Piece {
        if let Some(zeros) = &self.zeros {
            return zeros.clone();
        }
        let mut filling = self.buffer().await;
        filling.add_zeros(PIECE);
        self.zeros.insert(filling.done()).clone()
    }

    /// Returns true if the receiving end was dropped.
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
    /// Returns the next bytes, up to `length`, without consuming them.
    pub(super) fn peek(&mut self, length: usize) -> io::Result<&[u8]> {
        let start = self.fill_buf()?;
        Ok(&start[..start.len().min(length)])
    }

    /// Returns the next whole piece; `None` at the end. Must not be mixed with reads of single
    /// bytes.
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
                None => return Err(io::Error::other("the download was canceled")),
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
