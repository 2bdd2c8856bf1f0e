//! One transfer, without a socket and without the file: packets' numbers and a clock in, numbers
//! of blocks to send out.
//!
//! Go-back-N over windows (RFC 7440 section 4; a window of one is RFC 1350), block numbers that
//! roll over from 65535 to 0, and a retransmission timer that follows the measured round trip
//! (RFC 6298), because one lost block at a fixed timer of a second costs more than the whole file.

use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use super::packet::Options;

/// The largest block: with the headers of TFTP, UDP and IPv4 it fills an Ethernet frame, and a
/// larger one would have to be put together again by a boot ROM.
pub const MAX_BLKSIZE: u16 = 1468;
/// Block size when the request says none (RFC 1350).
const DEFAULT_BLKSIZE: u16 = 512;
/// The largest window: 94 KB in flight, half of Linux's default socket buffer.
pub const MAX_WINDOW: u16 = 64;
/// Wait for the first answer, before a round trip is known.
const FIRST_WAIT: Duration = Duration::from_millis(500);
/// The shortest wait: over any round trip of a LAN, with room for firmware that polls its card.
const MIN_WAIT: Duration = Duration::from_millis(20);
/// The longest wait.
const MAX_WAIT: Duration = Duration::from_secs(4);
/// A client that acknowledged nothing new for so long is gone.
pub const GIVE_UP: Duration = Duration::from_secs(20);

/// What is to be done after an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Nothing.
    Wait,
    /// Send the OACK of [`Session::granted`].
    OptionAck,
    /// Send these blocks, numbered from 1.
    Blocks(RangeInclusive<u64>),
    /// Every block was acknowledged; forget the session.
    Completed,
    /// The client is gone; forget the session.
    TimedOut,
}

/// One transfer's state.
#[derive(Debug)]
pub struct Session {
    granted: Options,
    blksize: u16,
    window: u64,
    /// Number of the last block, which is shorter than the others and may be empty.
    last: u64,
    /// The OACK is out and not yet acknowledged.
    negotiating: bool,
    /// All blocks to here are acknowledged.
    acked: u64,
    /// All blocks to here are sent.
    sent: u64,
    /// When the flight was sent, most recently.
    sent_at: Instant,
    /// The flight was sent more than once, so its acknowledgement says nothing about the round
    /// trip (Karn).
    resent: bool,
    /// A repeated acknowledgement already brought the flight out again.
    gap_answered: bool,
    round_trip: RoundTrip,
    wait: Duration,
    progress_at: Instant,
}

impl Session {
    /// A transfer of `size` bytes to a client that proposed `asked`, and the first step.
    pub fn start(asked: Options, size: u64, now: Instant) -> (Self, Step) {
        let granted = Options {
            blksize: asked.blksize.map(|n| n.min(MAX_BLKSIZE)),
            tsize: asked.tsize.map(|_| size),
            timeout: asked.timeout,
            windowsize: asked.windowsize.map(|n| n.min(MAX_WINDOW)),
        };
        let blksize = granted.blksize.unwrap_or(DEFAULT_BLKSIZE);
        let mut session = Self {
            granted,
            blksize,
            window: u64::from(granted.windowsize.unwrap_or(1)),
            last: size / u64::from(blksize) + 1,
            negotiating: !granted.is_empty(),
            acked: 0,
            sent: 0,
            sent_at: now,
            resent: false,
            gap_answered: false,
            round_trip: RoundTrip::default(),
            wait: FIRST_WAIT,
            progress_at: now,
        };
        let step = if session.negotiating { Step::OptionAck } else { session.fly(now, false) };
        (session, step)
    }

    /// What the OACK says.
    pub fn granted(&self) -> Options {
        self.granted
    }

    /// Bytes in every block but the last.
    pub fn blksize(&self) -> u16 {
        self.blksize
    }

    /// How many blocks are acknowledged.
    pub fn acked(&self) -> u64 {
        self.acked
    }

    /// When [`Session::timer`] is due.
    pub fn deadline(&self) -> Instant {
        self.sent_at + self.wait
    }

    /// An ACK arrived.
    pub fn ack(&mut self, block: u16, now: Instant) -> Step {
        if self.negotiating {
            if block != 0 {
                return Step::Wait;
            }
            self.negotiating = false;
            self.measure(now);
            return self.fly(now, false);
        }
        // How far the number lies ahead of what is acknowledged, modulo the roll-over. The flight
        // is far shorter than 65536, so an old number comes out as too far ahead.
        let ahead = u64::from(block.wrapping_sub(low_bits(self.acked)));
        let flight = self.sent - self.acked;
        if ahead > flight {
            return Step::Wait;
        }
        if ahead == 0 {
            return self.repeated(now);
        }
        self.acked += ahead;
        self.measure(now);
        if self.acked == self.last {
            return Step::Completed;
        }
        // An acknowledgement from within the flight reports a gap: what follows it goes out again.
        self.fly(now, ahead < flight)
    }

    /// The same block acknowledged again. With a window of one that must not bring the block out
    /// again (RFC 1123 section 4.2.3.1, the sorcerer's apprentice); with a larger one it says that
    /// the flight's first block is missing (RFC 7440 section 4), unless it is younger than half a
    /// round trip: then it still speaks of the flight before.
    fn repeated(&mut self, now: Instant) -> Step {
        let young = now.duration_since(self.sent_at) < self.round_trip.smoothed() / 2;
        if self.window == 1 || self.gap_answered || young {
            return Step::Wait;
        }
        self.gap_answered = true;
        self.resent = true;
        self.sent_at = now;
        Step::Blocks(self.acked + 1..=self.sent)
    }

    /// The clock moved; call at [`Session::deadline`] or later.
    pub fn timer(&mut self, now: Instant) -> Step {
        if now < self.deadline() {
            return Step::Wait;
        }
        if now.duration_since(self.progress_at) >= GIVE_UP {
            return Step::TimedOut;
        }
        self.wait = self.ceiling(self.wait * 2);
        self.repeat(now)
    }

    /// Send what is in flight once more, as after the client repeated its request.
    pub fn repeat(&mut self, now: Instant) -> Step {
        self.sent_at = now;
        self.resent = true;
        self.gap_answered = false;
        if self.negotiating { Step::OptionAck } else { Step::Blocks(self.acked + 1..=self.sent) }
    }

    /// Send the window behind what is acknowledged.
    fn fly(&mut self, now: Instant, resent: bool) -> Step {
        self.sent = self.last.min(self.acked + self.window);
        self.sent_at = now;
        self.resent = resent;
        self.gap_answered = false;
        Step::Blocks(self.acked + 1..=self.sent)
    }

    /// Something new was acknowledged.
    fn measure(&mut self, now: Instant) {
        if !self.resent {
            self.round_trip.sample(now.duration_since(self.sent_at));
        }
        self.progress_at = now;
        self.wait = self.ceiling(self.round_trip.wait());
    }

    /// The client's own timeout, if it told one (RFC 2349), is the longest wait.
    fn ceiling(&self, wait: Duration) -> Duration {
        let told = self.granted.timeout.map(|s| Duration::from_secs(s.into()));
        wait.min(told.unwrap_or(MAX_WAIT)).min(MAX_WAIT)
    }
}

/// A block's number on the wire.
pub fn low_bits(block: u64) -> u16 {
    (block & 0xffff) as u16
}

/// RFC 6298 section 2.
#[derive(Debug, Default)]
struct RoundTrip {
    known: Option<(Duration, Duration)>,
}

impl RoundTrip {
    fn sample(&mut self, trip: Duration) {
        self.known = Some(match self.known {
            None => (trip, trip / 2),
            Some((smoothed, variation)) => {
                ((smoothed * 7 + trip) / 8, (variation * 3 + smoothed.abs_diff(trip)) / 4)
            }
        });
    }

    fn smoothed(&self) -> Duration {
        self.known.map_or(Duration::ZERO, |(smoothed, _)| smoothed)
    }

    fn wait(&self) -> Duration {
        let known = self.known.map(|(smoothed, variation)| smoothed + variation * 4);
        known.unwrap_or(FIRST_WAIT).max(MIN_WAIT)
    }
}

#[cfg(test)]
mod tests;
