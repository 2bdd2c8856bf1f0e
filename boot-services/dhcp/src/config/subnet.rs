//! Networks in which the service assigns addresses: settings and pools.

use std::fmt;
use std::net::Ipv4Addr;

use crate::reservation::Prefix;

/// Default lease time of pool addresses in seconds: one hour.
pub const DEFAULT_POOL_LEASE_SECS: u32 = 3600;

/// Maximum addresses in all pools together. Limits the lease table, at about 100 bytes each.
pub const MAX_POOL_ADDRESSES: u64 = 1 << 18;
/// Maximum subnets of one service; the search for a client's subnet visits all of them.
pub const MAX_SUBNETS: usize = 64;

/// Minimum lease time in seconds; with a shorter lease, most packets would be renewals.
const MIN_LEASE_SECS: u32 = 60;

/// Network with DHCP: the box's own link, or a network behind a relay agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subnet {
    /// Addresses of the network: select a client's subnet, and give the netmask (option 1).
    pub prefix: Prefix,
    /// Address ranges of the pool; empty for a network with reservations only.
    pub ranges: Vec<Range>,
    /// Default gateway (option 3).
    pub gateway: Option<Ipv4Addr>,
    /// DNS servers (option 6), in order of preference.
    pub name_servers: Vec<Ipv4Addr>,
    /// NTP servers (option 42), in order of preference.
    pub time_servers: Vec<Ipv4Addr>,
    /// Domain name (option 15) and only entry of the search list (option 119).
    pub domain_name: Option<String>,
    /// Lease time of pool addresses (option 51), in seconds.
    pub lease_secs: u32,
}

impl Subnet {
    /// Creates a network without pool or settings, and with the default lease time.
    pub fn new(prefix: Prefix) -> Self {
        Self {
            prefix,
            ranges: Vec::new(),
            gateway: None,
            name_servers: Vec::new(),
            time_servers: Vec::new(),
            domain_name: None,
            lease_secs: DEFAULT_POOL_LEASE_SECS,
        }
    }
}

/// Range of consecutive addresses; both ends belong to the range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// Lowest address of the range.
    pub first: Ipv4Addr,
    /// Highest address of the range.
    pub last: Ipv4Addr,
}

impl Range {
    /// Returns true if the address is in the range.
    pub fn contains(self, address: Ipv4Addr) -> bool {
        (self.first..=self.last).contains(&address)
    }

    /// Returns the number of addresses; 0 if `last` is lower than `first`.
    pub fn size(self) -> u64 {
        let (first, last) = (u64::from(self.first.to_bits()), u64::from(self.last.to_bits()));
        (last + 1).saturating_sub(first)
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.first, self.last)
    }
}

/// Returns the mistakes in a list of subnets, each with its path: `subnets[0].ranges[1]: …`.
pub(crate) fn mistakes(subnets: &[Subnet]) -> Vec<String> {
    let mut mistakes = Vec::new();
    if subnets.len() > MAX_SUBNETS {
        mistakes.push(format!("subnets: {} subnets, the limit is {MAX_SUBNETS}", subnets.len()));
    }
    let addresses: u64 =
        subnets.iter().flat_map(|subnet| &subnet.ranges).map(|range| range.size()).sum();
    if addresses > MAX_POOL_ADDRESSES {
        mistakes.push(format!(
            "subnets: the pools have {addresses} addresses, the limit is {MAX_POOL_ADDRESSES}"
        ));
    }
    let mut before: Vec<Range> = Vec::new();
    for (at, subnet) in subnets.iter().enumerate() {
        let prefix = subnet.prefix;
        if subnets[..at].iter().any(|other| other.prefix == prefix) {
            mistakes.push(format!("subnets[{at}].prefix: {prefix} is listed twice"));
        }
        if subnet.lease_secs < MIN_LEASE_SECS {
            let secs = subnet.lease_secs;
            mistakes.push(format!(
                "subnets[{at}].lease_secs: {secs} s is too short, the minimum is {MIN_LEASE_SECS} s"
            ));
        }
        for (index, range) in subnet.ranges.iter().enumerate() {
            let path = format!("subnets[{at}].ranges[{index}]");
            if range.size() == 0 {
                mistakes.push(format!("{path}: {range} ends before it begins"));
            } else if !prefix.contains(range.first) || !prefix.contains(range.last) {
                mistakes.push(format!("{path}: {range} is not within {prefix}"));
            }
            let overlap = before.iter().find(|it| it.first <= range.last && range.first <= it.last);
            if let Some(other) = overlap {
                mistakes.push(format!("{path}: {range} overlaps {other}"));
            }
            before.push(*range);
        }
    }
    mistakes
}

#[cfg(test)]
mod tests {
    use super::{Range, Subnet, mistakes};

    fn range(first: &str, last: &str) -> Range {
        Range { first: first.parse().unwrap(), last: last.parse().unwrap() }
    }

    fn subnet(prefix: &str, ranges: &[Range]) -> Subnet {
        Subnet { ranges: ranges.to_vec(), ..Subnet::new(prefix.parse().unwrap()) }
    }

    #[test]
    fn good_subnets_have_no_mistakes() {
        let subnets = [
            subnet(
                "10.0.0.0/24",
                &[range("10.0.0.10", "10.0.0.20"), range("10.0.0.30", "10.0.0.30")],
            ),
            subnet("10.0.1.0/24", &[range("10.0.1.0", "10.0.1.255")]),
            subnet("10.0.2.0/24", &[]),
        ];
        assert_eq!(mistakes(&subnets), Vec::<String>::new());
        assert_eq!(subnets[0].ranges[0].size(), 11);
    }

    #[test]
    fn every_mistake_is_said_at_once_and_where() {
        let mut short = subnet("10.0.0.0/24", &[range("10.0.1.1", "10.0.1.5")]);
        short.lease_secs = 1;
        let subnets = [
            subnet("10.0.0.0/24", &[range("10.0.0.20", "10.0.0.10")]),
            short,
            subnet("10.0.1.0/24", &[range("10.0.1.5", "10.0.1.9")]),
            subnet("10.64.0.0/10", &[range("10.64.0.1", "10.127.255.254")]),
        ];
        let found = mistakes(&subnets);
        for (sentence, at) in [
            ("addresses, the limit is 262144", 0),
            ("subnets[0].ranges[0]: 10.0.0.20-10.0.0.10 ends before it begins", 1),
            ("subnets[1].prefix: 10.0.0.0/24 is listed twice", 2),
            ("subnets[1].lease_secs: 1 s is too short", 3),
            ("subnets[1].ranges[0]: 10.0.1.1-10.0.1.5 is not within 10.0.0.0/24", 4),
            ("subnets[2].ranges[0]: 10.0.1.5-10.0.1.9 overlaps 10.0.1.1-10.0.1.5", 5),
        ] {
            assert!(found[at].contains(sentence), "{sentence} in {found:#?}");
        }
        assert_eq!(found.len(), 6);
    }
}
