//! Rate limits: packets of each known machine, and reports of unknown machines.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::{Duration, Instant};

use stdx::MacAddr;

/// Maximum machines whose packet rate is remembered; about 40 bytes each.
pub(crate) const MAX_MACHINES: usize = 4096;
/// Packets that a machine may send at once. Firmware, loader and system of a boot send about 12.
const BURST: u32 = 24;
/// Time after which a machine may send one more packet.
const REFILL: Duration = Duration::from_millis(500);

/// Maximum unknown machines that are remembered.
pub(crate) const MAX_UNKNOWN: usize = 1024;
/// Minimum time between two reports of the same unknown machine.
const REPORT_AGAIN: Duration = Duration::from_secs(60);
/// Burst of reports about unknown machines, and time for each further report, so that a flood of
/// forged MAC addresses cannot flood the log.
const UNKNOWN_BURST: u32 = 64;
const UNKNOWN_REFILL: Duration = Duration::from_secs(1);

/// Result of counting a packet of a known machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pace {
    /// The packet is within the limit: answer it.
    Fine,
    /// The packet exceeds the limit, and it is the first one to do so: report it, do not answer.
    JustTooFast,
    /// The packet exceeds the limit, and the excess was already reported: do not answer.
    StillTooFast,
}

/// Packet counters of known and unknown machines, limited in number. The caller passes the time.
#[derive(Debug)]
pub(crate) struct RateLimiter {
    pub machines: Recent<MacAddr, Machine>,
    pub unknown: Recent<MacAddr, ()>,
    reports: Bucket,
}

#[derive(Debug)]
pub(crate) struct Machine {
    bucket: Bucket,
    reported: bool,
}

impl RateLimiter {
    pub fn new(now: Instant) -> Self {
        Self {
            machines: Recent::new(MAX_MACHINES),
            unknown: Recent::new(MAX_UNKNOWN),
            reports: Bucket::full(UNKNOWN_BURST, now),
        }
    }

    /// Counts a packet of a known machine against its limit.
    pub fn pace(&mut self, mac: MacAddr, now: Instant) -> Pace {
        let fresh = || Machine { bucket: Bucket::full(BURST, now), reported: false };
        let machine = self.machines.touch(mac, now, fresh);
        if machine.bucket.take(BURST, REFILL, now) {
            machine.reported = false;
            Pace::Fine
        } else if std::mem::replace(&mut machine.reported, true) {
            Pace::StillTooFast
        } else {
            Pace::JustTooFast
        }
    }

    /// Returns true if a packet of an unknown machine should be reported.
    pub fn report_unknown(&mut self, mac: MacAddr, now: Instant) -> bool {
        let lately = self
            .unknown
            .seen_at(mac)
            .is_some_and(|at| now.saturating_duration_since(at) < REPORT_AGAIN);
        if lately || !self.reports.take(UNKNOWN_BURST, UNKNOWN_REFILL, now) {
            return false;
        }
        self.unknown.touch(mac, now, || ());
        true
    }
}

/// Token bucket (rate limit) of one machine.
#[derive(Debug)]
struct Bucket {
    tokens: u32,
    filled: Instant,
}

impl Bucket {
    fn full(burst: u32, now: Instant) -> Self {
        Self { tokens: burst, filled: now }
    }

    fn take(&mut self, burst: u32, refill: Duration, now: Instant) -> bool {
        let since = now.saturating_duration_since(self.filled);
        let earned = u32::try_from(since.as_millis() / refill.as_millis()).unwrap_or(u32::MAX);
        self.tokens = self.tokens.saturating_add(earned).min(burst);
        self.filled = if self.tokens == burst { now } else { self.filled + refill * earned };
        let taken = self.tokens > 0;
        self.tokens = self.tokens.saturating_sub(1);
        taken
    }
}

/// Table of recent entries, in two generations. If the younger generation is full, it becomes the
/// older one, and the older one is dropped. So no search for the oldest entry is needed.
#[derive(Debug)]
pub(crate) struct Recent<K, T> {
    /// Maximum entries of one generation.
    limit: usize,
    young: HashMap<K, (Instant, T)>,
    old: HashMap<K, (Instant, T)>,
}

impl<K: Copy + Eq + Hash, T> Recent<K, T> {
    /// Creates an empty table of at most `limit` entries.
    pub fn new(limit: usize) -> Self {
        Self { limit: limit / 2, young: HashMap::new(), old: HashMap::new() }
    }

    /// Returns the number of entries, at most the limit.
    pub fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }

    /// Returns the time of the last packet of this key; `None` if the key is not remembered.
    pub fn seen_at(&self, key: K) -> Option<Instant> {
        self.young.get(&key).or_else(|| self.old.get(&key)).map(|(at, _)| *at)
    }

    /// Records a packet of this key, with the value `fresh()` for a new key, and returns the value.
    pub fn touch(&mut self, key: K, now: Instant, fresh: impl FnOnce() -> T) -> &mut T {
        if self.young.len() >= self.limit && !self.young.contains_key(&key) {
            self.old = std::mem::take(&mut self.young);
        }
        let before = || self.old.remove(&key).map_or_else(fresh, |(_, value)| value);
        let (at, value) = self.young.entry(key).or_insert_with(|| (now, before()));
        *at = now;
        value
    }
}

#[cfg(test)]
mod tests {
    use super::{BURST, MAX_MACHINES, MAX_UNKNOWN, Pace, REFILL, REPORT_AGAIN, RateLimiter};
    use std::time::{Duration, Instant};
    use stdx::MacAddr;

    fn mac(number: u32) -> MacAddr {
        let [a, b, c, d] = number.to_be_bytes();
        MacAddr([2, 0, a, b, c, d])
    }

    #[test]
    fn a_machine_that_asks_too_fast_is_told_apart_and_forgiven() {
        let now = Instant::now();
        let mut limiter = RateLimiter::new(now);
        for _ in 0..BURST {
            assert_eq!(limiter.pace(mac(1), now), Pace::Fine);
        }
        assert_eq!(limiter.pace(mac(1), now), Pace::JustTooFast);
        assert_eq!(limiter.pace(mac(1), now), Pace::StillTooFast);
        assert_eq!(limiter.pace(mac(2), now), Pace::Fine, "another machine is not held back");
        assert_eq!(limiter.pace(mac(1), now + REFILL), Pace::Fine);
        assert_eq!(limiter.pace(mac(1), now + REFILL), Pace::JustTooFast);
        let later = now + REFILL * (BURST * 3);
        let fine = (0..100).filter(|_| limiter.pace(mac(1), later) == Pace::Fine).count();
        assert_eq!(fine, BURST as usize, "a long rest earns one burst, not three");
    }

    #[test]
    fn slow_arrivals_keep_their_earned_time() {
        let now = Instant::now();
        let mut limiter = RateLimiter::new(now);
        while limiter.pace(mac(1), now) == Pace::Fine {}
        let fine = (1..=40)
            .filter(|step| {
                limiter.pace(mac(1), now + Duration::from_millis(300) * *step) == Pace::Fine
            })
            .count();
        assert_eq!(fine, 24, "12 s earn 24 packets, whatever the arrivals' spacing");
    }

    #[test]
    fn a_stranger_is_reported_once_a_minute() {
        let now = Instant::now();
        let mut limiter = RateLimiter::new(now);
        assert!(limiter.report_unknown(mac(1), now));
        assert!(!limiter.report_unknown(mac(1), now + REPORT_AGAIN / 2));
        assert!(limiter.report_unknown(mac(1), now + REPORT_AGAIN));
    }

    #[test]
    fn a_flood_of_addresses_fills_neither_memory_nor_the_story() {
        let now = Instant::now();
        let mut limiter = RateLimiter::new(now);
        let mut reports = 0;
        for number in 0..20_000 {
            let at = now + Duration::from_millis(u64::from(number));
            reports += usize::from(limiter.report_unknown(mac(number), at));
            if number < 6_000 {
                limiter.pace(mac(number), at);
            }
        }
        assert!((64..=64 + 21).contains(&reports), "{reports}");
        for number in 0..5_000 {
            let at = now + Duration::from_secs(u64::from(number) + 100);
            limiter.report_unknown(mac(number + 50_000), at);
        }
        let (machines, unknown) = (limiter.machines.len(), limiter.unknown.len());
        assert!((MAX_UNKNOWN / 2..=MAX_UNKNOWN).contains(&unknown), "{unknown}");
        assert!((MAX_MACHINES / 2..=MAX_MACHINES).contains(&machines), "{machines}");
    }
}
