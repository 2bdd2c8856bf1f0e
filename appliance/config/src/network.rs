//! `[network]`: an interface and what is served there, as a Network object has it.

use std::collections::BTreeMap;
use std::fmt;

use api::network::{Mode, NetworkPlan, NetworkSpec, RelayedSubnet, SubnetSettings};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::Bond;

/// The length of a network's prefix when the address says none.
const PREFIX: u8 = 24;

/// An interface and what is served there. What is said here is what the box begins with; a Network
/// object that somebody changed later rules until this changes too.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// Interface of the rack.
    pub interface: String,
    /// The box's address there, `10.77.0.1/24`; without a prefix it is /24. Left out, the interface
    /// is for people too: its address is the one that it has for them, and the box serves beside
    /// whoever gives it.
    #[serde(default)]
    pub address: String,
    /// The address is the one that the interface has for people.
    #[serde(skip)]
    pub joined: bool,
    /// Whom DHCP answers. Off until somebody says so: never a rogue server.
    #[serde(default)]
    pub mode: Mode,
    /// Answer machines nobody registered too.
    #[serde(default)]
    pub enroll: bool,
    /// The interface's last four hexadecimal digits, to give away addresses where the default
    /// route is.
    #[serde(default)]
    pub confirm: String,
    /// Send router advertisements, so that iPXE does not wait for an IPv6 router.
    #[serde(default = "yes")]
    pub router_advertisements: bool,
    /// Serve DHCPv6 to known machines.
    #[serde(default)]
    pub ipv6: bool,
    /// Loader file by client architecture.
    #[serde(default)]
    pub loaders: BTreeMap<String, String>,
    /// Addresses to give away, `first-last` each.
    #[serde(default, deserialize_with = "one_or_more")]
    pub pool: Vec<String>,
    /// The router that clients of the pool are told.
    #[serde(default)]
    pub gateway: String,
    /// Resolvers.
    #[serde(default)]
    pub name_servers: Vec<String>,
    /// NTP servers.
    #[serde(default)]
    pub time_servers: Vec<String>,
    /// Domain name.
    #[serde(default)]
    pub domain: String,
    /// How long an address of the pool is given.
    #[serde(default)]
    pub lease_secs: u32,
    /// Networks behind relay agents.
    #[serde(default)]
    pub relayed: Vec<Relayed>,
    /// The cards that the interface is made of. Only for the box itself.
    pub bond: Option<Bond>,
}

/// `[[network.relayed]]`: a network behind a relay agent. Its fields stand above once more, for
/// serde refuses no unknown key of a struct that is made of others.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Relayed {
    /// The network.
    pub subnet: String,
    /// Addresses to give away.
    #[serde(default, deserialize_with = "one_or_more")]
    pub pool: Vec<String>,
    /// The router.
    #[serde(default)]
    pub gateway: String,
    /// Resolvers.
    #[serde(default)]
    pub name_servers: Vec<String>,
    /// NTP servers.
    #[serde(default)]
    pub time_servers: Vec<String>,
    /// Domain name.
    #[serde(default)]
    pub domain: String,
    /// How long an address of the pool is given.
    #[serde(default)]
    pub lease_secs: u32,
}

fn yes() -> bool {
    true
}

/// An address for what is checked before there is one (RFC 5737).
const EXAMPLE: &str = "192.0.2.1";

impl Network {
    /// The interface is for people too, and has its address from them.
    pub fn is_shared(&self) -> bool {
        self.address.is_empty()
    }

    /// As a Network object's spec.
    pub fn spec(&self) -> NetworkSpec {
        let address = if self.address.contains('/') {
            self.address.clone()
        } else {
            format!("{}/{PREFIX}", self.address)
        };
        NetworkSpec {
            interface: self.interface.clone(),
            address,
            mode: self.mode,
            enroll: self.enroll,
            own: SubnetSettings {
                pool: self.pool.clone(),
                gateway: self.gateway.clone(),
                name_servers: self.name_servers.clone(),
                time_servers: self.time_servers.clone(),
                domain: self.domain.clone(),
                lease_seconds: self.lease_secs,
            },
            relayed: self.relayed.iter().map(Relayed::subnet).collect(),
            loaders: self.loaders.clone(),
            router_advertisements: Some(self.router_advertisements),
            ipv6: self.ipv6,
            confirm: self.confirm.clone(),
            rearm: String::new(),
        }
    }
}

impl Relayed {
    fn subnet(&self) -> RelayedSubnet {
        RelayedSubnet {
            subnet: self.subnet.clone(),
            settings: SubnetSettings {
                pool: self.pool.clone(),
                gateway: self.gateway.clone(),
                name_servers: self.name_servers.clone(),
                time_servers: self.time_servers.clone(),
                domain: self.domain.clone(),
                lease_seconds: self.lease_secs,
            },
        }
    }
}

/// The networks as they can be served.
///
/// # Errors
/// Everything that is wrong with them.
pub fn plans(networks: &[Network]) -> Result<Vec<NetworkPlan>, Vec<String>> {
    let (mut plans, mut problems) = (Vec::new(), Vec::new());
    for (at, network) in networks.iter().enumerate() {
        let path = if networks.len() == 1 { "network".into() } else { format!("network[{at}]") };
        let gives = matches!(network.mode, Mode::Reserved | Mode::Pool);
        if network.is_shared() && (gives || !network.pool.is_empty()) {
            problems.push(format!(
                "{path}.mode: without an address of its own the box serves beside the server that \
                 gives it one, so the mode is proxy or off"
            ));
        }
        let address = if network.is_shared() { EXAMPLE } else { &network.address };
        let read = Network { address: address.to_owned(), ..network.clone() };
        match read.spec().plan() {
            // Of a shared one there is none before the box has its address.
            Ok(plan) => plans.extend(Some(plan).filter(|_| !network.is_shared())),
            Err(found) => {
                problems.extend(found.iter().map(|problem| format!("{path}.{problem}")));
            }
        }
        if networks[..at].iter().any(|other| other.interface == network.interface) {
            problems.push(format!("{path}.interface: {} is there twice", network.interface));
        }
    }
    if problems.is_empty() { Ok(plans) } else { Err(problems) }
}

/// What is wrong with those that lack an address, where the box does not bring up the interface.
pub fn without_address(networks: &[Network]) -> Option<String> {
    let lacking = networks.iter().find(|network| network.is_shared())?;
    Some(format!(
        "network.address: {} has none, and only a box that was flashed takes the one that it gets",
        lacking.interface
    ))
}

/// One value, or a list of them.
pub fn one_or_more<'de, T, D>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    deserializer.deserialize_any(OneOrMore(std::marker::PhantomData))
}

struct OneOrMore<T>(std::marker::PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for OneOrMore<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("one, or a list")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Vec<T>, E> {
        T::deserialize(serde::de::value::StrDeserializer::new(text)).map(|one| vec![one])
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Vec<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(|one| vec![one])
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Vec<T>, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(seq))
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::{Network, one_or_more, plans};

    #[derive(Deserialize)]
    struct File {
        #[serde(deserialize_with = "one_or_more")]
        network: Vec<Network>,
    }

    fn networks(text: &str) -> Vec<Network> {
        toml::from_str::<File>(text).unwrap().network
    }

    #[test]
    fn one_table_or_several() {
        let one = networks("[network]\ninterface = 'eth0'\naddress = '10.77.0.1'\n");
        assert_eq!(one[0].spec().address, "10.77.0.1/24");
        let two = networks(
            "[[network]]\ninterface = 'eth0'\naddress = '10.77.0.1/16'\nmode = 'pool'\n\
             pool = '10.77.1.1-10.77.1.9'\n\
             [[network]]\ninterface = 'eth1'\naddress = '10.78.0.1'\n\
             pool = ['10.78.0.5', '10.78.0.7']\n\
             [[network.relayed]]\nsubnet = '10.79.0.0/24'\npool = '10.79.0.9'\n",
        );
        let plans = plans(&two).unwrap();
        assert_eq!(plans[1].subnets[0].addresses(), 2);
        assert_eq!(plans[1].subnets[1].to_string(), "10.79.0.0/24");
    }

    #[test]
    fn a_shared_interface_has_its_address_from_others() {
        let mut shared = networks("[network]\ninterface = 'eth0'\nmode = 'proxy'\n");
        assert_eq!(plans(&shared).unwrap(), []);
        shared[0].mode = api::network::Mode::Pool;
        let problems = plans(&shared).unwrap_err();
        assert!(problems[0].contains("so the mode is proxy or off"), "{problems:?}");
        shared[0].interface = "a b".to_owned();
        assert!(plans(&shared).unwrap_err().len() >= 2);
    }

    #[test]
    fn mistakes_name_the_network() {
        let twice = "[[network]]\ninterface = 'eth0'\naddress = '10.77.0.1'\n\
            [[network]]\ninterface = 'eth0'\naddress = 'here'\n";
        assert_eq!(
            plans(&networks(twice)).unwrap_err(),
            [
                r#"network[1].address: "here/24" is no address with a prefix of /8 to /30"#,
                "network[1].interface: eth0 is there twice",
            ]
        );
    }
}
