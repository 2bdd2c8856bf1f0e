//! Parser of a [`NetworkSpec`]: checks every address, and that every range is inside its network.

use std::collections::BTreeMap;
use std::fmt;
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;

use super::{Mode, NetworkSpec, SubnetSettings};

/// Maximum number of ranges in the pool of one network.
const MAX_RANGES: usize = 64;
/// Maximum number of networks behind relay agents.
const MAX_RELAYED: usize = 64;
/// Maximum number of addresses in all pools of one interface.
const MAX_ADDRESSES: u64 = 1 << 17;
/// Accepted lease times in seconds. Below one minute, clients would only renew leases. Above one
/// month, the pool gets unused addresses back too late.
const LEASE_SECS: RangeInclusive<u32> = 60..=2_592_000;

/// Invalid field of a [`NetworkSpec`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Path of the field below `spec`, such as `relayed[0].pool[1]`.
    pub field: String,
    /// Value of the field, cut to 64 characters.
    pub value: String,
    /// Reason, as the end of a sentence: `is not inside 10.77.0.0/24`.
    pub why: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {:?} {}", self.field, self.value, self.why)
    }
}

/// Valid [`NetworkSpec`] in parsed form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkPlan {
    /// Linux name of the interface.
    pub interface: String,
    /// Address of the box on the interface.
    pub address: Ipv4Addr,
    /// DHCP serving mode of the interface.
    pub mode: Mode,
    /// True if unknown machines may boot from the network.
    pub enroll: bool,
    /// Networks: first the network of the interface, then the networks behind relay agents.
    pub subnets: Vec<SubnetPlan>,
    /// Loader file by client architecture (DHCP option 93).
    pub loaders: BTreeMap<u16, String>,
    /// True if the box answers IPv6 router solicitations.
    pub router_advertisements: bool,
    /// True if the box serves DHCPv6 to known machines.
    pub ipv6: bool,
    /// Value of [`NetworkSpec::confirm`] in lower case.
    pub confirm: String,
    /// Value of [`NetworkSpec::rearm`], unchanged.
    pub rearm: String,
}

/// DHCP options and address pool of one network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubnetPlan {
    /// First address of the network.
    pub network: Ipv4Addr,
    /// Prefix length, 0 to 32.
    pub length: u8,
    /// Address ranges of the pool.
    pub ranges: Vec<RangeInclusive<Ipv4Addr>>,
    /// Address of the router; `None` if clients receive no router.
    pub gateway: Option<Ipv4Addr>,
    /// Addresses of DNS servers.
    pub name_servers: Vec<Ipv4Addr>,
    /// Addresses of NTP servers.
    pub time_servers: Vec<Ipv4Addr>,
    /// Domain name for the clients.
    pub domain: Option<String>,
    /// Lease time of a pool address in seconds.
    pub lease_secs: u32,
}

impl NetworkSpec {
    /// Parses and checks the spec.
    ///
    /// # Errors
    /// The spec has invalid fields; the list has all of them.
    pub fn plan(&self) -> Result<NetworkPlan, Vec<Problem>> {
        let mut reader = Reader::default();
        let name = &self.interface;
        if !(1..=15).contains(&name.len()) || name.contains(['/', ' ', ':']) {
            reader.problem("interface", name, "is not a valid interface name");
        }
        let (address, length) = reader.prefixed("address", &self.address);
        if address.is_unspecified() || address.is_multicast() || address.is_broadcast() {
            reader.problem("address", &self.address, "is not a valid host address");
        }
        let mut subnets = vec![reader.subnet("", address, length, &self.own)];
        if self.relayed.len() > MAX_RELAYED {
            let count = self.relayed.len().to_string();
            reader.problem("relayed", &count, &format!("networks, the limit is {MAX_RELAYED}"));
        }
        for (at, relayed) in self.relayed.iter().take(MAX_RELAYED).enumerate() {
            let path = format!("relayed[{at}].");
            let (address, length) = reader.prefixed(&format!("{path}subnet"), &relayed.subnet);
            subnets.push(reader.subnet(&path, address, length, &relayed.settings));
        }
        reader.pools(self.mode, &subnets);
        let plan = NetworkPlan {
            interface: name.clone(),
            address,
            mode: self.mode,
            enroll: self.enroll,
            subnets,
            loaders: reader.loaders(&self.loaders),
            router_advertisements: self.router_advertisements.unwrap_or(true),
            ipv6: self.ipv6,
            confirm: self.confirm.to_ascii_lowercase(),
            rearm: self.rearm.clone(),
        };
        if reader.problems.is_empty() { Ok(plan) } else { Err(reader.problems) }
    }
}

impl SubnetPlan {
    /// Returns true if the network contains `address`.
    pub fn contains(&self, address: Ipv4Addr) -> bool {
        masked(address, self.length) == self.network
    }

    /// Returns the network mask.
    pub fn netmask(&self) -> Ipv4Addr {
        Ipv4Addr::from_bits(mask(self.length))
    }

    /// Returns the number of addresses in the pool.
    pub fn addresses(&self) -> u64 {
        let count = |range: &RangeInclusive<Ipv4Addr>| {
            u64::from(range.end().to_bits()).saturating_sub(range.start().to_bits().into()) + 1
        };
        self.ranges.iter().map(count).sum()
    }
}

impl fmt::Display for SubnetPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.network, self.length)
    }
}

fn mask(length: u8) -> u32 {
    u32::MAX.checked_shl(32 - u32::from(length.min(32))).unwrap_or(0)
}

fn masked(address: Ipv4Addr, length: u8) -> Ipv4Addr {
    Ipv4Addr::from_bits(address.to_bits() & mask(length))
}

/// Parser that collects all problems, and replaces invalid values by harmless values.
#[derive(Default)]
struct Reader {
    problems: Vec<Problem>,
}

impl Reader {
    fn problem(&mut self, field: &str, value: &str, why: &str) {
        let value = value.chars().take(64).collect();
        self.problems.push(Problem { field: field.to_owned(), value, why: why.to_owned() });
    }

    fn prefixed(&mut self, field: &str, text: &str) -> (Ipv4Addr, u8) {
        let parts = text.split_once('/');
        let address = parts.and_then(|(address, _)| address.parse::<Ipv4Addr>().ok());
        let length = parts.and_then(|(_, length)| length.parse::<u8>().ok());
        match (address, length.filter(|length| (8..=30).contains(length))) {
            (Some(address), Some(length)) => (address, length),
            _ => {
                self.problem(field, text, "is not an address with prefix length /8 to /30");
                (Ipv4Addr::LOCALHOST, 32)
            }
        }
    }

    fn address(&mut self, field: &str, text: &str) -> Option<Ipv4Addr> {
        let address = text.parse().ok();
        if address.is_none() && !text.is_empty() {
            self.problem(field, text, "is not a valid IPv4 address");
        }
        address
    }

    fn addresses(&mut self, field: &str, texts: &[String]) -> Vec<Ipv4Addr> {
        let read = |(at, text): (usize, &String)| self.address(&format!("{field}[{at}]"), text);
        texts.iter().enumerate().filter_map(read).collect()
    }

    fn subnet(
        &mut self,
        path: &str,
        address: Ipv4Addr,
        length: u8,
        settings: &SubnetSettings,
    ) -> SubnetPlan {
        let mut plan = SubnetPlan {
            network: masked(address, length),
            length,
            ranges: Vec::new(),
            gateway: self.address(&format!("{path}gateway"), &settings.gateway),
            name_servers: self.addresses(&format!("{path}nameServers"), &settings.name_servers),
            time_servers: self.addresses(&format!("{path}timeServers"), &settings.time_servers),
            domain: Some(settings.domain.clone()).filter(|domain| !domain.is_empty()),
            lease_secs: SubnetSettings::DEFAULT_LEASE_SECS,
        };
        let secs = settings.lease_seconds;
        if LEASE_SECS.contains(&secs) {
            plan.lease_secs = secs;
        } else if secs != 0 {
            let why = "is not between 60 and 2592000 seconds (30 days)";
            self.problem(&format!("{path}leaseSeconds"), &secs.to_string(), why);
        }
        if settings.pool.len() > MAX_RANGES {
            let count = settings.pool.len().to_string();
            let why = format!("ranges, the limit is {MAX_RANGES}");
            self.problem(&format!("{path}pool"), &count, &why);
        }
        for (at, text) in settings.pool.iter().take(MAX_RANGES).enumerate() {
            let range = self.range(&format!("{path}pool[{at}]"), text, &plan);
            plan.ranges.extend(range);
        }
        plan
    }

    fn range(
        &mut self,
        field: &str,
        text: &str,
        subnet: &SubnetPlan,
    ) -> Option<RangeInclusive<Ipv4Addr>> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let read = |text: &str| text.trim().parse::<Ipv4Addr>().ok();
        let Some(range) = read(first).zip(read(last)).map(|(first, last)| first..=last) else {
            self.problem(field, text, "is not a valid range such as 10.77.0.100-10.77.0.199");
            return None;
        };
        if range.start() > range.end() {
            self.problem(field, text, "ends before it begins");
        } else if !subnet.contains(*range.start()) || !subnet.contains(*range.end()) {
            self.problem(field, text, &format!("is not inside {subnet}"));
        } else if subnet.ranges.iter().any(|other| overlap(other, &range)) {
            self.problem(field, text, "overlaps an earlier range");
        } else {
            return Some(range);
        }
        None
    }

    /// Checks the number of addresses in all pools, and that no network is listed twice.
    fn pools(&mut self, mode: Mode, subnets: &[SubnetPlan]) {
        let all: u64 = subnets.iter().map(SubnetPlan::addresses).sum();
        if all > MAX_ADDRESSES {
            let why = format!("addresses in all pools, the limit is {MAX_ADDRESSES}");
            self.problem("pool", &all.to_string(), &why);
        }
        if mode == Mode::Pool && all == 0 && self.problems.is_empty() {
            self.problem("pool", "", "must have addresses, because the mode is pool");
        }
        for (at, subnet) in subnets.iter().enumerate() {
            if subnets[..at].iter().any(|other| other.network == subnet.network) {
                let field = format!("relayed[{}].subnet", at.saturating_sub(1));
                self.problem(&field, &subnet.to_string(), "is listed twice");
            }
        }
    }

    fn loaders(&mut self, loaders: &BTreeMap<String, String>) -> BTreeMap<u16, String> {
        let mut read = BTreeMap::new();
        for (arch, file) in loaders {
            let field = format!("loaders[{arch}]");
            match arch.parse() {
                Err(_) => self.problem(&field, arch, "is not an architecture number (option 93)"),
                Ok(_) if file.is_empty() || file.len() > 127 => {
                    self.problem(&field, file, "is not a file name of 1 to 127 bytes");
                }
                Ok(arch) => {
                    read.insert(arch, file.clone());
                }
            }
        }
        read
    }
}

fn overlap(one: &RangeInclusive<Ipv4Addr>, other: &RangeInclusive<Ipv4Addr>) -> bool {
    one.start() <= other.end() && other.start() <= one.end()
}

#[cfg(test)]
mod tests;
