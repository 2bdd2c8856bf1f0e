//! Addresses that are checked before an offer, each with the waiting request.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use stdx::MacAddr;

use crate::messages::request::Request;

/// Maximum checks in progress. Further clients get no answer and send their request again.
pub(crate) const MAX_CHECKS: usize = 4096;
/// Time after which a check without a result counts as "address is free". Two ARP probes and their
/// pauses take about two seconds.
const CHECK_TIME: Duration = Duration::from_secs(4);

/// Request that waits for the result of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PendingCheck {
    /// The offer of a pool address waits. `tried` counts the addresses tried before for this
    /// request.
    Offer { request: Box<Request>, tried: u32 },
    /// No message waits: the reserved address was already offered. A conflict is only reported.
    Report(MacAddr),
    /// The offer of a reserved address waits, which an earlier record gave to another machine.
    Reclaim {
        /// Request of the machine whose record has the address now.
        request: Box<Request>,
        /// MAC of the machine that had the address before.
        former: MacAddr,
    },
}

/// Checks in progress by address, at most [`MAX_CHECKS`].
#[derive(Debug)]
pub(crate) struct Checks {
    waiting: HashMap<Ipv4Addr, (Instant, PendingCheck)>,
    purged: Instant,
}

impl Checks {
    pub fn new(now: Instant) -> Self {
        Self { waiting: HashMap::new(), purged: now }
    }

    /// Returns the number of checks, including expired ones that are not removed yet.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Replaces the earlier waiting request of a client with its latest one. Returns false if no
    /// check waits for this client, or the check has expired.
    pub fn renew(&mut self, address: Ipv4Addr, request: &Request, now: Instant) -> bool {
        let Some((since, waiting)) = self.waiting.get_mut(&address) else { return false };
        match waiting {
            PendingCheck::Offer { request: earlier, .. }
            | PendingCheck::Reclaim { request: earlier, .. }
                if now.saturating_duration_since(*since) < CHECK_TIME =>
            {
                request.clone_into(earlier);
                true
            }
            _ => {
                self.waiting.remove(&address);
                false
            }
        }
    }

    /// Starts a check. Returns false if [`MAX_CHECKS`] checks are in progress.
    pub fn begin(&mut self, address: Ipv4Addr, waiting: PendingCheck, now: Instant) -> bool {
        if self.waiting.len() >= MAX_CHECKS
            && now.saturating_duration_since(self.purged) >= CHECK_TIME
        {
            self.purged = now;
            self.waiting.retain(|_, (since, _)| now.saturating_duration_since(*since) < CHECK_TIME);
        }
        let room = self.waiting.len() < MAX_CHECKS;
        if room {
            self.waiting.insert(address, (now, waiting));
        }
        room
    }

    /// Ends a check and returns the waiting request; `None` if the address was not being checked.
    pub fn end(&mut self, address: Ipv4Addr) -> Option<PendingCheck> {
        self.waiting.remove(&address).map(|(_, waiting)| waiting)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::time::Instant;

    use super::{CHECK_TIME, Checks, MAX_CHECKS, PendingCheck};
    use crate::messages::request::Request;
    use crate::vectors::{ADDRESS, DISCOVER, MAC, edk2_pxe, udhcpc};

    #[test]
    fn the_latest_request_waits_and_not_for_ever() {
        let now = Instant::now();
        let mut checks = Checks::new(now);
        let request = |packet: crate::vectors::Packet| Request::read(&packet.end()).unwrap();
        let (first, second) = (request(udhcpc(DISCOVER)), request(edk2_pxe(DISCOVER)));
        assert!(!checks.renew(ADDRESS, &first, now));
        let offer = |request: &Request| PendingCheck::Offer {
            request: Box::new(request.clone()),
            tried: 0,
        };
        assert!(checks.begin(ADDRESS, offer(&first), now));
        assert!(checks.renew(ADDRESS, &second, now));
        assert_eq!(checks.end(ADDRESS), Some(offer(&second)));
        assert_eq!(checks.end(ADDRESS), None);
        assert!(checks.begin(ADDRESS, offer(&first), now));
        assert!(!checks.renew(ADDRESS, &second, now + CHECK_TIME));
        assert_eq!(checks.end(ADDRESS), None, "a late result finds no request");
    }

    #[test]
    fn the_table_is_bounded_and_forgets_what_is_over() {
        let now = Instant::now();
        let mut checks = Checks::new(now);
        let mut begin = |number: u32, at| {
            checks.begin(Ipv4Addr::from_bits(number), PendingCheck::Report(MAC), at)
        };
        let limit = u32::try_from(MAX_CHECKS).unwrap();
        assert!((0..limit).all(|number| begin(number, now)));
        assert!(!begin(limit, now));
        assert!(begin(limit, now + CHECK_TIME));
    }
}
