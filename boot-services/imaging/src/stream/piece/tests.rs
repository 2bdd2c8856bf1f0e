//! Tests of the buffers and their reuse.

use std::io::Read as _;
use std::task::Poll;

use super::{PIECE, PIECES, Piece, Sink, channel};

/// Returns a piece of `length` bytes, all `byte`.
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
