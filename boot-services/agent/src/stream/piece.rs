//! The bounded way from the fetcher to the decoder. A lost fetcher is an error, never an end.

use std::io::{self, BufRead, Read};

use bytes::{Buf, Bytes};
use tokio::sync::mpsc;

use super::Url;

/// Pieces in flight: with [`super::http1::READ_BUFFER`] at most 8 MiB.
const PIECES: usize = 32;

pub(super) enum Piece {
    Data(Bytes),
    End,
}

/// The fetcher's end.
pub(super) struct Sink(mpsc::Sender<Piece>);

/// The decoder's end: a blocking reader.
pub(super) struct Source {
    pieces: mpsc::Receiver<Piece>,
    current: Bytes,
    ended: bool,
    /// What is being read, for messages.
    pub(super) url: Url,
}

/// The decoder has gone away.
pub(super) struct Gone;

pub(super) fn channel(url: Url) -> (Sink, Source) {
    let (sender, receiver) = mpsc::channel(PIECES);
    let source = Source { pieces: receiver, current: Bytes::new(), ended: false, url };
    (Sink(sender), source)
}

impl Sink {
    pub(super) async fn data(&self, bytes: Bytes) -> Result<(), Gone> {
        self.0.send(Piece::Data(bytes)).await.map_err(|_| Gone)
    }

    pub(super) async fn end(self) -> Result<(), Gone> {
        self.0.send(Piece::End).await.map_err(|_| Gone)
    }
}

impl Source {
    /// The first bytes, up to `length`, without consuming them.
    pub(super) fn peek(&mut self, length: usize) -> io::Result<&[u8]> {
        let mut start = Vec::new();
        while start.len() < length && !self.fill_buf()?.is_empty() {
            start.extend_from_slice(&self.current);
            self.current.clear();
        }
        self.current = Bytes::from(start);
        Ok(&self.current[..self.current.len().min(length)])
    }
}

impl BufRead for Source {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.current.is_empty() && !self.ended {
            match self.pieces.blocking_recv() {
                Some(Piece::Data(bytes)) => self.current = bytes,
                Some(Piece::End) => self.ended = true,
                None => return Err(io::Error::other("the download was given up")),
            }
        }
        Ok(&self.current)
    }

    fn consume(&mut self, amount: usize) {
        self.current.advance(amount.min(self.current.len()));
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
