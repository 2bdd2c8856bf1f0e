//! `[network]`: settings of one interface with machines, in the fields of a Network object.

use std::collections::BTreeMap;
use std::fmt;

use api::network::{Mode, NetworkPlan, NetworkSpec, RelayedSubnet, SubnetSettings};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::Bond;

/// Default prefix length of `address`.
const PREFIX: u8 = 24;

/// Settings of one interface with machines. The box copies them to its Network object at the start.
/// A later change of that object applies until the settings here change too.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// Required. Linux name of the interface with the machines, such as `eth1`.
    pub interface: String,
    /// Address of the box on the interface with prefix length: `10.77.0.1/24`. The default length
    /// is 24. Only a flashed box accepts a network without `address`: the interface then keeps its
    /// address on the owner's network, and `mode` must be `proxy` or `off`.
    #[serde(default)]
    pub address: String,
    /// True if the address comes from the owner's network, because `address` was left out.
    #[serde(skip)]
    pub joined: bool,
    /// DHCP clients that the box answers. `off`: none, so the box does not disturb another DHCP
    /// server. `proxy`: known machines, with boot files only; another DHCP server assigns the
    /// addresses. `reserved`: known machines, with the addresses of their Hardware. `pool`: as
    /// `reserved`, and all other clients with addresses from `pool`.
    #[serde(default)]
    pub mode: Mode,
    /// Boot unknown machines into the agent OS, and create Hardware for them. Mode `proxy` then
    /// also answers unknown machines; mode `reserved` does not.
    #[serde(default)]
    pub enroll: bool,
    /// Last four hexadecimal digits of the MAC address of the interface, as confirmation. Needed
    /// for mode `pool` on the interface with the default route, which is probably the owner's
    /// network; without the digits, the box serves no DHCP there.
    #[serde(default)]
    pub confirm: String,
    /// Answer IPv6 router solicitations, so that iPXE does not wait for an IPv6 router.
    #[serde(default = "yes")]
    pub router_advertisements: bool,
    /// Serve DHCPv6 to known machines.
    #[serde(default)]
    pub ipv6: bool,
    /// Boot loader file by the number of the client architecture (DHCP option 93). Default: the
    /// built-in table, also for architectures that are not listed here.
    #[serde(default)]
    pub loaders: BTreeMap<String, String>,
    /// Ranges of addresses for the pool, each `first-last` or one address. At most 64. Default:
    /// none.
    #[serde(default, deserialize_with = "one_or_more")]
    pub pool: Vec<String>,
    /// Address of the router for clients of the pool. Default: none, as on an isolated rack.
    #[serde(default)]
    pub gateway: String,
    /// Addresses of DNS servers for the clients. Default: none.
    #[serde(default)]
    pub name_servers: Vec<String>,
    /// Addresses of NTP servers for the clients. Default: none.
    #[serde(default)]
    pub time_servers: Vec<String>,
    /// Domain name for the clients. Default: none.
    #[serde(default)]
    pub domain: String,
    /// Lease time of a pool address in seconds, 60 to 2592000. Default: 3600.
    #[serde(default)]
    pub lease_secs: u32,
    /// Networks whose clients reach the box through a DHCP relay agent, at most 64. Default: none.
    #[serde(default)]
    pub relayed: Vec<Relayed>,
    /// NICs that form the interface as a bond. Flashed box only.
    pub bond: Option<Bond>,
}

/// `[[network.relayed]]`: a network behind a DHCP relay agent. The fields repeat those of
/// [`Network`], because serde cannot refuse unknown keys of a flattened struct.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Relayed {
    /// Required. Network with prefix length, such as `10.78.0.0/24`.
    pub subnet: String,
    /// Ranges of addresses for the pool, each `first-last` or one address. At most 64. Default:
    /// none.
    #[serde(default, deserialize_with = "one_or_more")]
    pub pool: Vec<String>,
    /// Address of the router for the clients. Default: none.
    #[serde(default)]
    pub gateway: String,
    /// Addresses of DNS servers for the clients. Default: none.
    #[serde(default)]
    pub name_servers: Vec<String>,
    /// Addresses of NTP servers for the clients. Default: none.
    #[serde(default)]
    pub time_servers: Vec<String>,
    /// Domain name for the clients. Default: none.
    #[serde(default)]
    pub domain: String,
    /// Lease time of a pool address in seconds, 60 to 2592000. Default: 3600.
    #[serde(default)]
    pub lease_secs: u32,
}

fn yes() -> bool {
    true
}

/// Placeholder address to check a network that has no address yet (RFC 5737).
const EXAMPLE: &str = "192.0.2.1";

impl Network {
    /// Returns true if `address` was left out: the address comes from the owner's network.
    pub fn is_shared(&self) -> bool {
        self.address.is_empty()
    }

    /// Returns the spec of the Network object.
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

/// Returns the checked networks. A network without `address` is checked but not returned: its plan
/// needs the address from DHCP.
///
/// # Errors
/// The networks have mistakes. All are returned; each text begins with its key.
pub fn plans(networks: &[Network]) -> Result<Vec<NetworkPlan>, Vec<String>> {
    let (mut plans, mut problems) = (Vec::new(), Vec::new());
    for (at, network) in networks.iter().enumerate() {
        let path = if networks.len() == 1 { "network".into() } else { format!("network[{at}]") };
        let gives = matches!(network.mode, Mode::Reserved | Mode::Pool);
        if network.is_shared() && (gives || !network.pool.is_empty()) {
            problems.push(format!(
                "{path}.mode: without a static address, another DHCP server gives addresses on \
                 this network: set the mode to proxy or off"
            ));
        }
        let address = if network.is_shared() { EXAMPLE } else { &network.address };
        let read = Network { address: address.to_owned(), ..network.clone() };
        match read.spec().plan() {
            // A shared interface has no plan before the box has its address there.
            Ok(plan) => plans.extend(Some(plan).filter(|_| !network.is_shared())),
            Err(found) => {
                problems.extend(found.iter().map(|problem| format!("{path}.{problem}")));
            }
        }
        if networks[..at].iter().any(|other| other.interface == network.interface) {
            problems.push(format!("{path}.interface: {} is listed twice", network.interface));
        }
    }
    if problems.is_empty() { Ok(plans) } else { Err(problems) }
}

/// Returns the mistake for a network without `address` on Linux, where the box does not set up the
/// interface; `None` if all networks have an address.
pub fn without_address(networks: &[Network]) -> Option<String> {
    let lacking = networks.iter().find(|network| network.is_shared())?;
    Some(format!(
        "network.address: {} has no address, and only a flashed box can use an address from DHCP",
        lacking.interface
    ))
}

/// Deserializes one value or a list of values.
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
        f.write_str("one value, or a list of values")
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
        assert!(problems[0].contains("set the mode to proxy or off"), "{problems:?}");
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
                r#"network[1].address: "here/24" is not an address with prefix length /8 to /30"#,
                "network[1].interface: eth0 is listed twice",
            ]
        );
    }
}
