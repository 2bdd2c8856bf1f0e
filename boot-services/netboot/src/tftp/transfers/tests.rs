//! Tests the table of transfers with datagrams of real boot ROMs.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{MAX_PER_PEER, Output, Transfers};
use crate::tftp::content::Content;
use crate::tftp::packet::{Code, Options, Packet, error};
use crate::{FetchEvent, Outcome};

const ASK_SIZE: &[u8] = b"\0\x01snponly.efi\0octet\0tsize\x000\0blksize\x001468\0windowsize\x004\0";
const ASK: &[u8] = b"\0\x01snponly.efi\0octet\0blksize\x001468\0windowsize\x004\0";

fn peer(port: u16) -> SocketAddr {
    SocketAddr::from(([10, 77, 0, 11], port))
}

fn content(size: usize) -> io::Result<Content> {
    Ok(Content::from(Arc::from(vec![7; size])))
}

/// Answers the load that must be the next output.
fn load(transfers: &mut Transfers, answer: io::Result<Content>, now: Instant) {
    let Some(Output::Load { peer, ticket, file }) = transfers.output() else {
        panic!("no file was asked for")
    };
    assert_eq!(file, "snponly.efi");
    transfers.loaded(peer, ticket, answer, now);
}

#[track_caller]
fn packet(transfers: &mut Transfers) -> Vec<u8> {
    match transfers.output() {
        Some(Output::Packet { bytes, .. }) => bytes,
        _ => panic!("no packet was sent"),
    }
}

#[track_caller]
fn blocks(transfers: &mut Transfers) -> (u64, u64) {
    match transfers.output() {
        Some(Output::Blocks { blocks, .. }) => (*blocks.start(), *blocks.end()),
        _ => panic!("no blocks were sent"),
    }
}

#[track_caller]
fn ended(transfers: &mut Transfers) -> (u64, Outcome) {
    match transfers.output() {
        Some(Output::Ended(FetchEvent::Tftp { bytes, outcome, .. })) => (bytes, outcome),
        _ => panic!("nothing ended"),
    }
}

fn ack(block: u16) -> Vec<u8> {
    [4_u16.to_be_bytes(), block.to_be_bytes()].concat()
}

/// EDK2 requests the size, stops, and requests the file. The second request comes from another
/// port, from the same port, or without a stop.
#[test]
fn edk2_asks_twice() {
    for (port, stops) in [(2000, true), (2001, true), (2000, false)] {
        let now = Instant::now();
        let mut transfers = Transfers::default();
        transfers.datagram(peer(2000), ASK_SIZE, now);
        load(&mut transfers, content(5000), now);
        let granted = Options {
            blksize: Some(1468),
            tsize: Some(5000),
            windowsize: Some(4),
            ..Options::default()
        };
        let bytes = packet(&mut transfers);
        assert_eq!(Packet::parse(&bytes), Ok(Packet::OptionAck(granted)));
        if stops {
            let stop = error(Code::Options, "User aborted the transfer");
            transfers.datagram(peer(2000), &stop, now);
            assert_eq!(ended(&mut transfers), (0, Outcome::SizeOnly));
        }
        transfers.datagram(peer(port), ASK, now);
        if !stops {
            assert_eq!(ended(&mut transfers), (0, Outcome::SizeOnly));
        }
        load(&mut transfers, content(5000), now);
        let bytes = packet(&mut transfers);
        let granted = Options { tsize: None, ..granted };
        assert_eq!(Packet::parse(&bytes), Ok(Packet::OptionAck(granted)));
        transfers.datagram(peer(port), &ack(0), now);
        assert_eq!(blocks(&mut transfers), (1, 4));
        transfers.datagram(peer(port), &ack(4), now);
        assert_eq!(ended(&mut transfers), (5000, Outcome::Completed));
        assert!(transfers.output().is_none() && transfers.table.is_empty());
    }
}

#[test]
fn a_copied_request_is_answered_again_but_starts_nothing() {
    let now = Instant::now();
    let mut transfers = Transfers::default();
    transfers.datagram(peer(1), ASK, now);
    transfers.datagram(peer(1), ASK, now);
    load(&mut transfers, content(50_000), now);
    let first = packet(&mut transfers);
    transfers.datagram(peer(1), ASK, now);
    assert_eq!(packet(&mut transfers), first);
    transfers.datagram(peer(1), &ack(0), now);
    assert_eq!(blocks(&mut transfers), (1, 4));
    transfers.datagram(peer(1), &ack(4), now);
    assert_eq!(blocks(&mut transfers), (5, 8));
    transfers.datagram(peer(1), ASK, now);
    assert!(transfers.output().is_none());
    // Two seconds later the same request comes from a machine that was reset.
    transfers.datagram(peer(1), ASK, now + Duration::from_secs(2));
    assert!(matches!(ended(&mut transfers), (5872, Outcome::Aborted { .. })));
    load(&mut transfers, content(50_000), now);
    assert_eq!(packet(&mut transfers), first);
}

#[test]
fn what_is_not_there_is_refused_at_once_and_in_words() {
    let now = Instant::now();
    let mut transfers = Transfers::default();
    let mut refusal = |request: &[u8], cause: Option<io::ErrorKind>| {
        transfers.datagram(peer(1), request, now);
        if let Some(cause) = cause {
            load(&mut transfers, Err(cause.into()), now);
        }
        let bytes = packet(&mut transfers);
        let Ok(Packet::Error { code, message }) = Packet::parse(&bytes) else { panic!() };
        (code, message.to_owned(), ended(&mut transfers).1)
    };
    let (code, text, outcome) = refusal(ASK, Some(io::ErrorKind::NotFound));
    assert_eq!((code, text.as_str(), outcome), (1, "no such file", Outcome::NotFound));
    assert_eq!(refusal(ASK, Some(io::ErrorKind::QuotaExceeded)).0, 0);
    assert_eq!(refusal(b"\0\x02a\0octet\0", None).0, 2);
    assert_eq!(refusal(b"\0\x01a\0netascii\0", None).1, "only the mode octet is served");
    assert_eq!(refusal(b"\0\x01a", None).0, 4);
    assert!(transfers.table.is_empty());
}

#[test]
fn strangers_packets_are_not_answered() {
    let now = Instant::now();
    let mut transfers = Transfers::default();
    let data = [&[0, 3, 0, 1][..], b"x"].concat();
    let oack = Options { tsize: Some(1), ..Options::default() }.to_bytes();
    let stop = error(Code::Undefined, "");
    for bytes in [&ack(1)[..], &data, &oack, &stop, b"", b"\0", b"\0\x09", &[255; 2048]] {
        transfers.datagram(peer(1), bytes, now);
        assert!(transfers.output().is_none(), "{bytes:?}");
    }
}

#[test]
fn a_silent_client_is_forgotten() {
    let mut now = Instant::now();
    let mut transfers = Transfers::default();
    transfers.datagram(peer(1), ASK, now);
    load(&mut transfers, content(10), now);
    packet(&mut transfers);
    let mut repeats = 0;
    let outcome = loop {
        now = transfers.due().unwrap();
        transfers.timer(now);
        match transfers.output() {
            Some(Output::Packet { .. }) => repeats += 1,
            Some(Output::Ended(FetchEvent::Tftp { outcome, .. })) => break outcome,
            None => {}
            _ => panic!("something else was done"),
        }
    };
    assert_eq!(outcome, Outcome::TimedOut);
    assert!((5..12).contains(&repeats), "{repeats}");
    transfers.timer(now);
    assert_eq!(transfers.due(), None);
}

#[test]
fn one_address_cannot_take_every_slot() {
    let now = Instant::now();
    let mut transfers = Transfers::default();
    for port in 0..u16::try_from(MAX_PER_PEER).unwrap() {
        transfers.datagram(peer(port), ASK, now);
        assert!(matches!(transfers.output(), Some(Output::Load { .. })));
    }
    transfers.datagram(peer(60_000), ASK, now);
    assert!(matches!(Packet::parse(&packet(&mut transfers)), Ok(Packet::Error { .. })));
    assert!(matches!(ended(&mut transfers).1, Outcome::Refused(_)));
    let other = SocketAddr::from(([10, 77, 0, 12], 1));
    transfers.datagram(other, ASK, now);
    assert!(matches!(transfers.output(), Some(Output::Load { .. })));
}
