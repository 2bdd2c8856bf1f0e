//! Addresses of one subnet that may be assigned, and the choice of the next one.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use crate::config::subnet::{Range, Subnet};
use crate::reservation::Prefix;

/// Minimum seconds between two searches of a pool that had no unused address left. A new search
/// finds addresses that were reserved during the last one.
const WALK_AGAIN_SECS: u64 = 60;

/// Part of the lease table for one subnet.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    prefix: Option<Prefix>,
    ranges: Vec<Range>,
    /// Addresses that are never assigned: box, gateway, network and broadcast address.
    excluded: Vec<Ipv4Addr>,
    /// Position of the search for unused addresses: index of the range, and offset in the range.
    walk: (usize, u64),
    walk_again_at: u64,
    /// Ends of this subnet's leases, the earliest first.
    pub ends: BTreeSet<(u64, Ipv4Addr)>,
}

impl Pool {
    /// Creates the pool of a subnet, which is empty unless `gives` ([`crate::Mode::Pool`]) is true.
    pub fn new(subnet: &Subnet, server: Ipv4Addr, gives: bool) -> Self {
        let prefix = subnet.prefix;
        let mut excluded = vec![server];
        excluded.extend(subnet.gateway);
        // RFC 3021: a network of two addresses has neither.
        if prefix.length() < 31 {
            excluded.extend([prefix.address(), prefix.last()]);
        }
        let ranges = if gives { subnet.ranges.clone() } else { Vec::new() };
        Self { prefix: Some(prefix), ranges, excluded, ..Self::default() }
    }

    /// Returns true if the subnet contains the address, inside or outside of its ranges.
    pub fn is_home_of(&self, address: Ipv4Addr) -> bool {
        self.prefix.is_some_and(|prefix| prefix.contains(address))
    }

    /// Returns the prefix length of the subnet.
    pub fn length(&self) -> u8 {
        self.prefix.map_or(0, Prefix::length)
    }

    /// Returns true if the pool has address ranges.
    pub fn has_ranges(&self) -> bool {
        !self.ranges.is_empty()
    }

    /// Returns true if the pool may assign this address.
    pub fn gives(&self, address: Ipv4Addr) -> bool {
        self.ranges.iter().any(|range| range.contains(address)) && !self.excluded.contains(&address)
    }

    /// Returns the next address for which `is_free` is true. Each call continues after the last
    /// result, so the pool is searched once, not once per client. `None`: no address is free.
    pub fn next_unused(
        &mut self,
        now: u64,
        is_free: impl Fn(Ipv4Addr) -> bool,
    ) -> Option<Ipv4Addr> {
        loop {
            let Some(range) = self.ranges.get(self.walk.0) else {
                if now < self.walk_again_at {
                    return None;
                }
                self.walk_again_at = now + WALK_AGAIN_SECS;
                self.walk = (0, 0);
                continue;
            };
            let at = u64::from(range.first.to_bits()) + self.walk.1;
            let address = u32::try_from(at).ok().map(Ipv4Addr::from_bits);
            let Some(address) = address.filter(|address| *address <= range.last) else {
                self.walk = (self.walk.0 + 1, 0);
                continue;
            };
            self.walk.1 += 1;
            if !self.excluded.contains(&address) && is_free(address) {
                return Some(address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::{Pool, WALK_AGAIN_SECS};
    use crate::config::subnet::{Range, Subnet};

    fn at(last: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, 0, 0, last)
    }

    fn pool(ranges: &[(u8, u8)]) -> Pool {
        let ranges =
            ranges.iter().map(|(first, last)| Range { first: at(*first), last: at(*last) });
        let gateway = Some(at(2));
        let prefix = "10.0.0.0/24".parse().unwrap();
        let subnet = Subnet { ranges: ranges.collect(), gateway, ..Subnet::new(prefix) };
        Pool::new(&subnet, at(1), true)
    }

    #[test]
    fn nobody_is_given_the_network_the_box_the_gateway_or_the_broadcast_address() {
        let mut pool = pool(&[(0, 4), (254, 255)]);
        for (last, gives) in
            [(0, false), (1, false), (2, false), (3, true), (5, false), (255, false)]
        {
            assert_eq!(pool.gives(at(last)), gives, "{last}");
        }
        let all: Vec<_> = std::iter::from_fn(|| pool.next_unused(0, |_| true)).take(3).collect();
        assert_eq!(all, [at(3), at(4), at(254)]);
    }

    #[test]
    fn an_exhausted_pool_is_walked_again_after_a_while() {
        let mut pool = pool(&[(10, 11)]);
        assert_eq!(pool.next_unused(5, |address| address != at(10)), Some(at(11)));
        assert_eq!(
            pool.next_unused(5, |address| address == at(10)),
            Some(at(10)),
            "the first again"
        );
        assert_eq!(pool.next_unused(5, |address| address == at(10)), None);
        assert_eq!(pool.next_unused(4 + WALK_AGAIN_SECS, |_| true), None);
        assert_eq!(pool.next_unused(5 + WALK_AGAIN_SECS, |_| true), Some(at(10)));
        assert_eq!(Pool::default().next_unused(0, |_| true), None);
    }
}
