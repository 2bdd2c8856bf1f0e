//! One transfer, without the socket and the file. Inputs are packet numbers and the time; outputs
//! are the numbers of the blocks to send.
//!
//! Implements go-back-N over windows (RFC 7440 section 4; a window of one is RFC 1350). Block
//! numbers roll over from 65535 to 0. The retransmission timer follows the measured round trip (RFC
//! 6298), because one lost block at a fixed timer of a second costs more than the whole file.

use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use super::packet::Options;

/// Maximum block size in bytes: with the headers of TFTP, UDP and IPv4 it fills an Ethernet frame.
/// A boot ROM would have to reassemble the fragments of a larger block.
pub const MAX_BLKSIZE: u16 = 1468;
/// Block size in bytes without the option `blksize` (RFC 1350).
const DEFAULT_BLKSIZE: u16 = 512;
/// Maximum window in blocks: 94 KB in flight, half of Linux's default socket buffer.
pub const MAX_WINDOW: u16 = 64;
/// Retransmission timeout before a round trip is measured.
const FIRST_WAIT: Duration = Duration::from_millis(500);
/// Minimum retransmission timeout: longer than any round trip of a LAN, and sufficient for firmware
/// that polls its NIC.
const MIN_WAIT: Duration = Duration::from_millis(20);
/// Maximum retransmission timeout, also when the client requests a longer one.
const MAX_WAIT: Duration = Duration::from_secs(4);
/// Time after which a transfer ends if the client acknowledges no new block.
pub const GIVE_UP: Duration = Duration::from_secs(20);

/// Action after an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// No action; the timer stays as it is.
    Wait,
    /// Send the OACK with [`Session::granted`].
    OptionAck,
    /// Send these blocks, numbered from 1.
    Blocks(RangeInclusive<u64>),
    /// The client acknowledged every block; remove the session.
    Completed,
    /// The client does not respond any more; remove the session.
    TimedOut,
}

/// State of one transfer.
#[derive(Debug)]
pub struct Session {
    granted: Options,
    blksize: u16,
    window: u64,
    /// Number of the last block, which is shorter than the others and may be empty.
    last: u64,
    /// True if the OACK was sent and is not yet acknowledged.
    negotiating: bool,
    /// Highest acknowledged block; all blocks before it are acknowledged too.
    acked: u64,
    /// Highest block that was sent; all blocks before it were sent too.
    sent: u64,
    /// Time at which the current window was sent last.
    sent_at: Instant,
    /// True if the window was sent more than once, so that its acknowledgment does not measure the
    /// round trip (Karn's algorithm).
    resent: bool,
    /// True if a repeated acknowledgment already caused a retransmission of this window.
    gap_answered: bool,
    round_trip: RoundTrip,
    wait: Duration,
    progress_at: Instant,
}

impl Session {
    /// Creates the session for a file of `size` bytes and the client's options `asked`. Returns the
    /// first step.
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

    /// Returns the options of the OACK, limited to [`MAX_BLKSIZE`] and [`MAX_WINDOW`].
    pub fn granted(&self) -> Options {
        self.granted
    }

    /// Returns the block size in bytes; only the last block is shorter.
    pub fn blksize(&self) -> u16 {
        self.blksize
    }

    /// Returns the number of acknowledged blocks.
    pub fn acked(&self) -> u64 {
        self.acked
    }

    /// Returns the time at which [`Session::timer`] is due.
    pub fn deadline(&self) -> Instant {
        self.sent_at + self.wait
    }

    /// Processes an ACK packet.
    pub fn ack(&mut self, block: u16, now: Instant) -> Step {
        if self.negotiating {
            if block != 0 {
                return Step::Wait;
            }
            self.negotiating = false;
            self.measure(now);
            return self.fly(now, false);
        }
        // Distance of the block number from the last acknowledged block, modulo 65536. A window is
        // far shorter than 65536, so an old number gives a distance beyond the window.
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
        // An acknowledgment from within the window reports a gap: the blocks after the acknowledged
        // block are sent again.
        self.fly(now, ahead < flight)
    }

    /// Processes a repeated acknowledgment of a block. With a window of one it must not cause a
    /// retransmission (RFC 1123 section 4.2.3.1, the sorcerer's apprentice). With a larger window
    /// it reports that the window's first block is missing (RFC 7440 section 4). An acknowledgment
    /// within half a round trip after sending belongs to the previous window, and is ignored.
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

    /// Handles the retransmission timeout: sends the window again, or ends the transfer after
    /// [`GIVE_UP`] without progress. Before [`Session::deadline`] the call has no effect.
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

    /// Sends the window again, for example after the client repeated its request.
    pub fn repeat(&mut self, now: Instant) -> Step {
        self.sent_at = now;
        self.resent = true;
        self.gap_answered = false;
        if self.negotiating { Step::OptionAck } else { Step::Blocks(self.acked + 1..=self.sent) }
    }

    /// Sends the window of blocks that follow the last acknowledged block.
    fn fly(&mut self, now: Instant, resent: bool) -> Step {
        self.sent = self.last.min(self.acked + self.window);
        self.sent_at = now;
        self.resent = resent;
        self.gap_answered = false;
        Step::Blocks(self.acked + 1..=self.sent)
    }

    /// Records progress, and measures the round trip if the window was sent once only.
    fn measure(&mut self, now: Instant) {
        if !self.resent {
            self.round_trip.sample(now.duration_since(self.sent_at));
        }
        self.progress_at = now;
        self.wait = self.ceiling(self.round_trip.wait());
    }

    /// Limits a timeout to the client's option `timeout` (RFC 2349) and to [`MAX_WAIT`].
    fn ceiling(&self, wait: Duration) -> Duration {
        let told = self.granted.timeout.map(|s| Duration::from_secs(s.into()));
        wait.min(told.unwrap_or(MAX_WAIT)).min(MAX_WAIT)
    }
}

/// Returns the block number as packets carry it, modulo 65536.
pub fn low_bits(block: u64) -> u16 {
    (block & 0xffff) as u16
}

/// Round-trip estimator of RFC 6298 section 2.
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
