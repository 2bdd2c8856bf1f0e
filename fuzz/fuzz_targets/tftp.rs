//! A TFTP packet; and a transfer whose client sends any packet at any time.

#![no_main]

use std::time::{Duration, Instant};

use fuzz::Input;
use libfuzzer_sys::fuzz_target;
use netboot::loader::{BootFile, is_plain};
use netboot::tftp::packet::{Options, Packet};
use netboot::tftp::session::{MAX_BLKSIZE, MAX_WINDOW, Session, Step};

/// Checks a step; returns true if the transfer continues.
fn goes_on(session: &Session, step: &Step, size: u64) -> bool {
    let blksize = u64::from(session.blksize());
    assert!((8..=u64::from(MAX_BLKSIZE)).contains(&blksize));
    let last = size / blksize + 1;
    assert!(session.acked() <= last);
    if let Step::Blocks(blocks) = step {
        let (first, end) = (*blocks.start(), *blocks.end());
        assert_eq!(first, session.acked() + 1);
        assert!(first <= end && end <= last && end - first < u64::from(MAX_WINDOW), "{blocks:?}");
    }
    !matches!(step, Step::Completed | Step::TimedOut)
}

fn transfer(asked: Options, input: &mut Input<'_>) {
    let size = u64::from(input.number()) << (input.byte() % 16);
    let mut now = Instant::now();
    let (mut session, mut step) = Session::start(asked, size, now);
    let granted = session.granted();
    assert!(granted.windowsize.is_none_or(|window| (1..=MAX_WINDOW).contains(&window)));
    assert!(granted.tsize.is_none_or(|told| told == size));
    while goes_on(&session, &step, size) && !input.is_empty() {
        let acked = session.acked();
        step = match input.byte() % 4 {
            // Acknowledgment of a client that received all blocks.
            0 => match step {
                Step::Blocks(blocks) => session.ack((*blocks.end() & 0xffff) as u16, now),
                _ => session.ack(0, now),
            },
            1 => session.ack(input.number(), now),
            2 => session.repeat(now),
            _ => {
                now += Duration::from_millis(input.number().into());
                session.timer(now)
            }
        };
        assert!(session.acked() >= acked, "what was acknowledged stays so");
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input(bytes);
    let packet = input.chunk();
    let asked = match Packet::parse(packet) {
        Ok(Packet::Read(request)) => {
            if let Some(BootFile::File(name)) = BootFile::read(request.file) {
                assert!(is_plain(&name), "{name:?} could leave its folder");
            }
            request.options
        }
        Ok(Packet::OptionAck(options)) => {
            let again = options.to_bytes();
            assert_eq!(Packet::parse(&again), Ok(Packet::OptionAck(options)));
            options
        }
        _ => return,
    };
    transfer(asked, &mut input);
});
