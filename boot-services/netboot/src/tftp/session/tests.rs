//! Runs sessions against a scripted client, over a lossy network and with a simulated clock.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

use proptest::prelude::{ProptestConfig, any, proptest};

use super::{GIVE_UP, MAX_WAIT, Session, Step, low_bits};
use crate::tftp::packet::Options;

/// Network that loses, duplicates and delays packets, from a seed.
struct Wire {
    seed: u64,
    loss: u64,
    duplicate: u64,
    reorder: bool,
}

impl Wire {
    fn dice(&mut self) -> u64 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.seed >> 33) % 100
    }

    /// Returns the arrival times of all copies of a packet that is sent now.
    fn arrivals(&mut self) -> Vec<Duration> {
        let copies = 1 + usize::from(self.dice() < self.duplicate);
        let mut arrivals = Vec::new();
        for _ in 0..copies {
            if self.dice() >= self.loss {
                let late = if self.reorder { self.dice() * 10 } else { 0 };
                arrivals.push(Duration::from_micros(200 + late));
            }
        }
        arrivals
    }
}

#[derive(PartialEq, Eq, PartialOrd, Ord, Clone, Debug)]
enum Flying {
    OptionAck,
    Data(u64),
    Ack(u16),
}

/// Client of RFC 7440 section 4: acknowledges at the window's end and at a gap.
struct Client {
    window: u64,
    last: u64,
    received: u64,
    in_window: u64,
    gap_said: bool,
}

impl Client {
    fn hears(&mut self, packet: &Flying) -> Option<u16> {
        match *packet {
            Flying::OptionAck if self.received == 0 => Some(0),
            Flying::Data(block) if block == self.received + 1 => {
                self.received = block;
                self.in_window += 1;
                self.gap_said = false;
                let full = self.in_window == self.window || block == self.last;
                full.then(|| {
                    self.in_window = 0;
                    low_bits(block)
                })
            }
            // The window's last block again: the acknowledgment was lost.
            Flying::Data(block) if block == self.received => Some(low_bits(block)),
            // Another block than the expected one: report the gap once.
            Flying::Data(_) if !self.gap_said => {
                self.gap_said = true;
                self.in_window = 0;
                Some(low_bits(self.received))
            }
            _ => None,
        }
    }
}

struct Run {
    took: Duration,
    sent: u64,
    done: bool,
}

/// Runs one transfer from request to end. A client accepts only the next block, so a finished run
/// is a complete file.
fn run(options: Options, size: u64, mut wire: Wire) -> Run {
    let start = Instant::now();
    let (mut session, first) = Session::start(options, size, start);
    let blksize = u64::from(session.blksize());
    let window = u64::from(session.granted().windowsize.unwrap_or(1));
    let last = size / blksize + 1;
    let mut client = Client { window, last, received: 0, in_window: 0, gap_said: false };
    let mut flying: BinaryHeap<Reverse<(Duration, u64, Flying)>> = BinaryHeap::new();
    let (mut now, mut count, mut sent) = (Duration::ZERO, 0, 0);
    let mut step = first;
    loop {
        let packets = match step {
            Step::Wait => Vec::new(),
            Step::OptionAck => vec![Flying::OptionAck],
            Step::Blocks(blocks) => blocks.map(Flying::Data).collect(),
            Step::Completed => return Run { took: now, sent, done: client.received == last },
            Step::TimedOut => return Run { took: now, sent, done: false },
        };
        for packet in packets {
            assert!(packet <= Flying::Data(last), "{packet:?} lies behind the end");
            sent += 1;
            for delay in wire.arrivals() {
                count += 1;
                flying.push(Reverse((now + delay, count, packet.clone())));
            }
        }
        let due = session.deadline() - start;
        step = match flying.pop() {
            Some(Reverse((at, _, packet))) if at <= due => {
                now = at;
                if let Flying::Ack(block) = packet {
                    session.ack(block, start + now)
                } else {
                    if let Some(block) = client.hears(&packet) {
                        for delay in wire.arrivals() {
                            count += 1;
                            flying.push(Reverse((now + delay, count, Flying::Ack(block))));
                        }
                    }
                    Step::Wait
                }
            }
            other => {
                flying.extend(other);
                now = due;
                session.timer(start + now)
            }
        };
    }
}

fn options(blksize: u16, windowsize: u16) -> Options {
    Options { blksize: Some(blksize), windowsize: Some(windowsize), ..Options::default() }
}

const CLEAN: Wire = Wire { seed: 1, loss: 0, duplicate: 0, reorder: false };

#[test]
fn a_clean_wire_carries_each_block_once() {
    for (asked, size) in [
        (Options::default(), 0),
        (Options::default(), 511),
        (Options::default(), 512),
        (options(1468, 4), 174_080),
        (options(1468, 64), 10_000_000),
        // More blocks than a block number can count: 65536 follows 65535 as 0.
        (options(8, 64), 8 * 140_000),
        (options(8, 1), 8 * 70_000),
    ] {
        let run = run(asked, size, CLEAN);
        let blksize = u64::from(asked.blksize.unwrap_or(512));
        let packets = size / blksize + 1 + u64::from(!asked.is_empty());
        assert!(run.done, "{asked:?} {size}");
        assert_eq!(run.sent, packets, "{asked:?} {size}");
    }
}

#[test]
fn options_are_granted_within_limits() {
    let asked =
        Options { blksize: Some(8192), tsize: Some(0), timeout: Some(3), windowsize: Some(1000) };
    let (session, step) = Session::start(asked, 77, Instant::now());
    assert_eq!(step, Step::OptionAck);
    let granted =
        Options { blksize: Some(1468), tsize: Some(77), timeout: Some(3), windowsize: Some(64) };
    assert_eq!(session.granted(), granted);
    // No options, no negotiation: the first block is sent at once, with RFC 1350's block size.
    let (session, step) = Session::start(Options::default(), 77, Instant::now());
    assert_eq!((step, session.blksize()), (Step::Blocks(1..=1), 512));
}

#[test]
fn a_repeated_acknowledgement_brings_no_block_out_twice() {
    let now = Instant::now();
    let (mut session, _) = Session::start(Options::default(), 5000, now);
    assert_eq!(session.ack(1, now), Step::Blocks(2..=2));
    for _ in 0..10 {
        assert_eq!(session.ack(1, now + Duration::from_millis(5)), Step::Wait);
    }
    assert_eq!(session.ack(9, now), Step::Wait);
    assert_eq!(session.ack(2, now), Step::Blocks(3..=3));
}

#[test]
fn a_gap_brings_the_rest_of_the_window_out_again_and_only_once() {
    let now = Instant::now();
    let ms = Duration::from_millis;
    let (mut session, _) = Session::start(options(512, 4), 50_000, now);
    assert_eq!(session.ack(0, now + ms(2)), Step::Blocks(1..=4));
    // Block 3 was lost.
    assert_eq!(session.ack(2, now + ms(4)), Step::Blocks(3..=6));
    // The same acknowledgment again, too early to concern the new window.
    assert_eq!(session.ack(2, now + ms(4)), Step::Wait);
    // Block 3 was lost again.
    assert_eq!(session.ack(2, now + ms(6)), Step::Blocks(3..=6));
    assert_eq!(session.ack(2, now + ms(8)), Step::Wait);
    assert_eq!(session.ack(6, now + ms(9)), Step::Blocks(7..=10));
    // An old acknowledgment is ignored.
    assert_eq!(session.ack(4, now + ms(9)), Step::Wait);
}

#[test]
fn the_timer_follows_the_round_trip_and_backs_off() {
    let now = Instant::now();
    let (mut session, _) = Session::start(Options::default(), 5000, now);
    assert_eq!(session.deadline() - now, Duration::from_millis(500));
    assert_eq!(session.ack(1, now + Duration::from_millis(1)), Step::Blocks(2..=2));
    let mut wait = session.deadline() - (now + Duration::from_millis(1));
    assert_eq!(wait, Duration::from_millis(20));
    let mut at = session.deadline();
    assert_eq!(session.timer(at - Duration::from_nanos(1)), Step::Wait);
    loop {
        match session.timer(at) {
            Step::Blocks(blocks) => assert_eq!(blocks, 2..=2),
            Step::TimedOut => break,
            other => panic!("{other:?}"),
        }
        let next = session.deadline() - at;
        assert_eq!(next, (wait * 2).min(MAX_WAIT));
        (wait, at) = (next, session.deadline());
    }
    assert!(at - now >= GIVE_UP && at - now < GIVE_UP + MAX_WAIT * 2);
}

#[test]
fn a_timeout_that_the_client_told_is_the_longest_wait() {
    let now = Instant::now();
    let asked = Options { timeout: Some(1), ..Options::default() };
    let (mut session, _) = Session::start(asked, 10, now);
    for _ in 0..5 {
        assert_eq!(session.timer(session.deadline()), Step::OptionAck);
    }
    let before = session.deadline();
    session.timer(before);
    assert_eq!(session.deadline() - before, Duration::from_secs(1));
}

#[test]
fn one_lost_packet_in_a_hundred_costs_less_than_a_second() {
    for window in [1, 8] {
        let wire = Wire { seed: 7, loss: 1, duplicate: 0, reorder: false };
        let run = run(options(1468, window), 1 << 20, wire);
        assert!(run.done && run.took < Duration::from_secs(1), "{window}: {:?}", run.took);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn every_file_arrives_whole_over_a_bad_wire(
        seed in any::<u64>(),
        blksize in 8_u16..1600,
        window in 1_u16..70,
        size in 0_u64..40_000,
        loss in 0_u64..15,
        duplicate in 0_u64..20,
        reorder in any::<bool>(),
    ) {
        let run = run(options(blksize, window), size, Wire { seed, loss, duplicate, reorder });
        assert!(run.done);
    }

    #[test]
    fn no_acknowledgement_makes_it_panic(
        size in 0_u64..100_000,
        acks in proptest::collection::vec((any::<u16>(), 0_u64..50), 0..300),
    ) {
        let mut now = Instant::now();
        let (mut session, _) = Session::start(options(64, 7), size, now);
        for (block, wait) in acks {
            now += Duration::from_millis(wait);
            if session.ack(block % 40, now) == Step::Completed
                || session.ack(block, now) == Step::Completed
                || session.timer(now) == Step::TimedOut
            {
                break;
            }
        }
    }
}
