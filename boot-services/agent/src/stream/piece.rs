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
    (Sink { items: sender, spent, home, made: 0 }, source)
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
mod tests {
    use std::io::Read as _;
    use std::task::Poll;

    use super::{PIECE, PIECES, Piece, Sink, channel};

    /// A piece of so many of these bytes.
    async fn piece(sink: &mut Sink, byte: u8, length: usize) -> Piece {
        let mut filling = sink.buffer().await;
        filling.room()[..length].fill(byte);
        filling.add(length);
        filling.done()
    }

    #[tokio::test]
    async fn buffers_are_few_and_come_back_from_the_last_reader() {
        let (mut sink, _source) = channel("http://box/a".parse().unwrap());
        let mut pieces = Vec::new();
        for number in 0..PIECES {
            pieces.push(piece(&mut sink, number as u8 + 1, PIECE).await);
        }
        let shared = pieces[3].clone();
        let mut waiting = Box::pin(sink.buffer());
        let mut is_ready = || match poll_once(waiting.as_mut()) {
            Poll::Ready(filling) => Some(filling),
            Poll::Pending => None,
        };
        assert!(is_ready().is_none(), "all of them are in use");
        drop(pieces.remove(3));
        assert!(is_ready().is_none(), "somebody reads it still");
        drop(shared);
        let filling = is_ready().expect("the last reader is done");
        assert!(filling.bytes().is_empty() && !filling.is_full());
    }

    fn poll_once<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut std::task::Context::from_waker(std::task::Waker::noop()))
    }

    #[tokio::test]
    async fn a_used_buffer_pads_with_zeros() {
        let (mut sink, _source) = channel("http://box/a".parse().unwrap());
        for _ in 0..PIECES {
            drop(piece(&mut sink, 0xee, PIECE).await);
        }
        let short = piece(&mut sink, 1, 700).await;
        assert_eq!(short.padded(512), [vec![1; 700], vec![0; 324]].concat());
        assert_eq!(short.padded(4096).len(), 4096);
        assert_eq!(short.padded(1), short.bytes());
    }

    #[tokio::test]
    async fn a_lost_fetcher_is_no_end() {
        for ends in [true, false] {
            let (mut sink, mut source) = channel("http://box/a".parse().unwrap());
            let reading = tokio::task::spawn_blocking(move || {
                let mut bytes = Vec::new();
                assert_eq!(source.peek(2).unwrap(), [7, 7]);
                source.read_to_end(&mut bytes).map(|_| bytes)
            });
            let first = piece(&mut sink, 7, 5).await;
            let second = piece(&mut sink, 8, 1).await;
            assert!(sink.data(first).await.is_ok() && sink.data(second).await.is_ok());
            if ends {
                assert!(sink.end().await.is_ok());
            } else {
                drop(sink);
            }
            let read = reading.await.unwrap();
            assert_eq!(read.ok(), ends.then(|| vec![7, 7, 7, 7, 7, 8]));
        }
    }

    #[tokio::test]
    async fn a_lost_reader_is_seen() {
        let (mut sink, source) = channel("http://box/a".parse().unwrap());
        let piece = piece(&mut sink, 7, 5).await;
        assert!(!sink.is_closed());
        drop(source);
        assert!(sink.is_closed() && sink.data(piece).await.is_err());
    }
}
