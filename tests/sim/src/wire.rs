//! Network model: loss, duplication and delay of packets, and the rate of the box's link.

use fastrand::Rng;

use crate::clock::{Moment, SECOND};
use crate::faults::Faults;

/// Transit time of a packet without extra delay, in microseconds.
const TRANSIT: Moment = 100;
/// Bytes that the box's link carries in a second: 1 Gbit/s.
const LINK_RATE: u64 = 125_000_000;
/// Maximum time that a packet waits for the link; a switch's buffer holds no more.
const LINK_QUEUE: Moment = 50_000;
/// Bytes around each payload: Ethernet preamble, header, checksum and gap, and the headers of IPv4
/// and UDP.
const OVERHEAD: u64 = 66;

/// Network between the box, the machines and the other server.
#[derive(Debug)]
pub struct Wire {
    faults: Faults,
    /// Virtual time at which the box's link has sent all its queued packets.
    free_at: Moment,
}

/// Arrival times of the copies of one packet; no copies means that it was lost.
pub type Arrivals = [Option<Moment>; 2];

impl Wire {
    /// A wire with these faults.
    pub fn new(faults: Faults) -> Self {
        Self { faults, free_at: 0 }
    }

    /// Arrival times of a packet under the current faults.
    pub fn carry(&self, now: Moment, rng: &mut Rng) -> Arrivals {
        if now >= self.faults.until {
            return [Some(now + TRANSIT), None];
        }
        let mut arrival = || {
            let lost = percent(self.faults.drop, rng);
            let held_up = if self.faults.delay > 0 && rng.u8(..) < 32 {
                rng.u64(..self.faults.delay)
            } else {
                rng.u64(..TRANSIT)
            };
            (!lost).then_some(now + TRANSIT + held_up)
        };
        let first = arrival();
        let second = arrival();
        [first, second.filter(|_| percent(self.faults.duplicate, rng))]
    }

    /// Arrival times of a packet of this size that the box sends.
    pub fn carry_from_box(&mut self, bytes: usize, now: Moment, rng: &mut Rng) -> Arrivals {
        let start = self.free_at.max(now);
        if start - now > LINK_QUEUE {
            return [None, None];
        }
        self.free_at = start + (bytes as u64 + OVERHEAD) * SECOND / LINK_RATE;
        self.carry(self.free_at, rng)
    }
}

/// True with a probability of `share` percent.
pub fn percent(share: f64, rng: &mut Rng) -> bool {
    rng.f64() * 100.0 < share
}

#[cfg(test)]
mod tests {
    use fastrand::Rng;

    use super::Wire;
    use crate::clock::SECOND;
    use crate::faults::Faults;

    #[test]
    fn the_wire_loses_doubles_and_reorders_until_the_faults_end() {
        let faults = Faults { drop: 10.0, duplicate: 10.0, ..Faults::ROUGH };
        let (wire, mut rng) = (Wire::new(faults), Rng::with_seed(1));
        let fates: Vec<_> = (0..10_000).map(|at| wire.carry(at * 1000, &mut rng)).collect();
        let arrived = |copy: usize| fates.iter().filter(|fate| fate[copy].is_some()).count();
        assert!((8_800..9_200).contains(&arrived(0)), "{}", arrived(0));
        assert!((800..1_000).contains(&arrived(1)), "{}", arrived(1));
        let overtaken =
            fates.windows(2).filter(|pair| pair[0][0] > pair[1][0] && pair[1][0].is_some());
        assert!(overtaken.count() > 500);
        let later = (0..1000).map(|at| wire.carry(faults.until + at, &mut rng));
        assert!(later.into_iter().all(|fate| fate[0].is_some() && fate[1].is_none()));
    }

    #[test]
    fn a_full_link_makes_wait_and_then_loses() {
        let (mut wire, mut rng) = (Wire::new(Faults::CALM), Rng::with_seed(1));
        let fates: Vec<_> =
            (0..10_000).map(|_| wire.carry_from_box(1434, SECOND, &mut rng)[0]).collect();
        let arrived: Vec<_> = fates.iter().flatten().collect();
        assert!((4_100..4_200).contains(&arrived.len()), "50 ms of 12 us: {}", arrived.len());
        assert!(arrived.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
