//! `ipam=`: static address of a machine that boots a medium on a network without a DHCP server
//! (Tinkerbell's technical page "ISO Static IPAM" of Smee).

use std::net::Ipv4Addr;
use std::str::FromStr;

use platform::net::{Address, NAME_SERVERS, prefix_of};
use stdx::MacAddr;

use super::cmdline::vlan;

/// Number of fields, separated by colons.
const FIELDS: usize = 9;

/// Fields of `ipam=` that the agent uses. Host name, search domains and time servers are ignored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ipam {
    /// MAC address of the interface.
    pub mac: Option<MacAddr>,
    /// VLAN ID; `None` for an untagged network.
    pub vlan: Option<u16>,
    /// Static address; `None` to use DHCP.
    pub address: Option<Address>,
}

impl FromStr for Ipam {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let fields: Vec<&str> = text.split(':').collect();
        let [mac, vlan_id, address, netmask, gateway, _, name_servers, _, _] = fields[..] else {
            return Err(format!("expected {FIELDS} fields, found {}", fields.len()));
        };
        Ok(Self {
            mac: field("MAC", &mac.replace('-', ":"))?,
            vlan: vlan(vlan_id)?,
            address: field("address", address)?
                .map(|address| with_address(address, netmask, gateway, name_servers))
                .transpose()?,
        })
    }
}

fn with_address(
    address: Ipv4Addr,
    netmask: &str,
    gateway: &str,
    name_servers: &str,
) -> Result<Address, String> {
    let mask = field("netmask", netmask)?.ok_or("it has an address, but no netmask")?;
    let servers = name_servers.split(',').take(NAME_SERVERS);
    let servers = servers.map(|server| field("name server", server)).collect::<Result<Vec<_>, _>>();
    Ok(Address {
        address,
        prefix: prefix_of(mask).ok_or_else(|| format!("{mask} is not a valid netmask"))?,
        router: field("gateway", gateway)?,
        name_servers: servers?.into_iter().flatten().collect(),
    })
}

/// Parses a field; `None` if empty. `name` is for the error.
fn field<T: FromStr>(name: &str, text: &str) -> Result<Option<T>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|_| format!("{text:?} is not a valid {name}"))
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::{Address, Ipam};

    #[test]
    fn as_tinkerbell_writes_it() {
        let text = "52-54-00-77-00-01:7:10.77.0.11:255.255.254.0:10.77.0.1:nuc1:\
                    10.77.0.1,10.77.0.2:rack.example:10.77.0.3";
        let ipam: Ipam = text.parse().unwrap();
        assert_eq!(ipam.mac.unwrap().to_string(), "52:54:00:77:00:01");
        assert_eq!(ipam.vlan, Some(7));
        let address = Address {
            address: Ipv4Addr::new(10, 77, 0, 11),
            prefix: 23,
            router: Some(Ipv4Addr::new(10, 77, 0, 1)),
            name_servers: vec![Ipv4Addr::new(10, 77, 0, 1), Ipv4Addr::new(10, 77, 0, 2)],
        };
        assert_eq!(ipam.address, Some(address));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, reason) in [
            ("52-54", "expected 9 fields, found 1"),
            ("x::::::::", "\"x\" is not a valid MAC"),
            (":9999:::::::", "\"9999\" is not a VLAN ID, 1 to 4094"),
            ("::10.0.0.1::::::", "it has an address, but no netmask"),
            ("::10.0.0.1:255.0.255.0:::::", "255.0.255.0 is not a valid netmask"),
            ("::10.0.0.1:255.0.0.0:here::::", "\"here\" is not a valid gateway"),
            ("::10.0.0.1:255.0.0.0:::a,b::", "\"a\" is not a valid name server"),
        ] {
            assert_eq!(text.parse::<Ipam>().unwrap_err(), reason, "{text}");
        }
    }
}
