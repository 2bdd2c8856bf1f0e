//! `bond = { … }` of an interface: NICs that form the interface.

use platform::net::{self, BondMode, NAME_MAX};
use serde::Deserialize;

use super::{Management, Network};

/// Maximum number of ports of a bond.
const PORTS_MAX: usize = 8;

/// NICs that form one interface. The enclosing table has the name of the interface.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bond {
    /// Required. Names of the NICs, 1 to 8. The bond gets the MAC address of the first NIC that
    /// exists.
    pub ports: Vec<String>,
    /// Required. Mode of the bond. `active-backup`: one NIC at a time. `802.3ad`: all NICs, by LACP
    /// with the switch. `balance-alb`: all NICs, on any switch.
    pub mode: Mode,
    /// Preferred NIC, used whenever it has a link; not with `802.3ad`. Default: none.
    pub primary: Option<String>,
    /// Rate of LACP messages from the switch: `slow` (every 30 seconds, the default) or `fast`
    /// (every second). Only with `802.3ad`.
    pub lacp_rate: Option<LacpRate>,
}

/// Bonding mode, by the kernel's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum Mode {
    /// One NIC at a time; works with any switch.
    #[serde(rename = "active-backup")]
    ActiveBackup,
    /// All NICs at once, by LACP with the switch.
    #[serde(rename = "802.3ad")]
    Lacp,
    /// All NICs at once; works with any switch.
    #[serde(rename = "balance-alb")]
    BalanceAlb,
}

/// Rate at which the switch sends LACP messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LacpRate {
    /// One message every 30 seconds.
    Slow,
    /// One message every second.
    Fast,
}

/// Interface of a table in the file, with its bond.
#[derive(Debug, Clone)]
pub struct NamedInterface<'a> {
    /// Path of the table in the file: `management[0]`.
    pub path: String,
    /// Name of the interface.
    pub interface: &'a str,
    /// Bond that forms the interface; `None` for a NIC.
    pub bond: Option<&'a Bond>,
}

impl Bond {
    /// Returns the bond configuration for the platform; `name` is the name of the interface.
    pub fn named(&self, name: &str) -> net::Bond {
        net::Bond {
            name: name.to_owned(),
            ports: self.ports.clone(),
            mode: match self.mode {
                Mode::ActiveBackup => BondMode::ActiveBackup,
                Mode::Lacp => BondMode::Lacp,
                Mode::BalanceAlb => BondMode::BalanceAlb,
            },
            primary: self.primary.clone(),
            fast_lacp: self.lacp_rate == Some(LacpRate::Fast),
        }
    }

    fn problems(&self) -> Vec<(&'static str, String)> {
        let mut problems = Vec::new();
        let count = self.ports.len();
        if !(1..=PORTS_MAX).contains(&count) {
            problems.push(("ports", format!("expected 1 to {PORTS_MAX} NICs, found {count}")));
        }
        for (at, port) in self.ports.iter().enumerate() {
            if !is_name(port) {
                problems.push(("ports", format!("{port:?} is not a valid interface name")));
            } else if self.ports[..at].contains(port) {
                problems.push(("ports", format!("{port} is listed twice")));
            }
        }
        let lacp = self.mode == Mode::Lacp;
        if let Some(primary) = &self.primary {
            if lacp {
                problems.push(("primary", "not allowed with 802.3ad: it uses all NICs".to_owned()));
            } else if !self.ports.contains(primary) {
                problems.push(("primary", format!("{primary} is not one of the bond's ports")));
            }
        }
        if self.lacp_rate.is_some() && !lacp {
            problems.push(("lacp_rate", "only allowed with mode 802.3ad".to_owned()));
        }
        problems
    }
}

/// Returns every interface of the file: first `management`, then `network`.
pub fn interfaces<'a>(owners: &'a [Management], racks: &'a [Network]) -> Vec<NamedInterface<'a>> {
    let owners = owners.iter().enumerate().map(|(at, one)| NamedInterface {
        path: format!("management[{at}]"),
        interface: &one.interface,
        bond: one.bond.as_ref(),
    });
    let racks = racks.iter().enumerate().map(|(at, one)| NamedInterface {
        path: format!("network[{at}]"),
        interface: &one.interface,
        bond: one.bond.as_ref(),
    });
    owners.chain(racks).collect()
}

/// Returns every bond of the file once, although several tables may name it.
pub fn bonds(all: &[NamedInterface<'_>]) -> Vec<net::Bond> {
    let mut bonds: Vec<net::Bond> = Vec::new();
    for one in all {
        let known = bonds.iter().any(|bond| bond.name == one.interface);
        bonds.extend(one.bond.filter(|_| !known).map(|bond| bond.named(one.interface)));
    }
    bonds
}

/// Returns every mistake of the file's bonds, each with its key. `all`: all interfaces.
pub fn problems(all: &[NamedInterface<'_>]) -> Vec<String> {
    let mut problems = Vec::new();
    for (at, one) in all.iter().enumerate() {
        let Some(bond) = one.bond else { continue };
        let mut say = |key: &str, what: String| {
            problems.push(format!("{}.bond.{key}: {what}", one.path));
        };
        bond.problems().into_iter().for_each(|(key, what)| say(key, what));
        if !is_name(one.interface) {
            say("ports", format!("{:?} is not a valid name for a bond", one.interface));
        }
        for other in &all[..at] {
            if other.interface == one.interface && other.bond.is_some_and(|it| it != bond) {
                say("ports", format!("{} has other settings for this bond", other.path));
            }
        }
        for port in &bond.ports {
            let taken = |other: &&NamedInterface<'_>| {
                let others_port = other.interface != one.interface
                    && other.bond.is_some_and(|it| it.ports.contains(port));
                other.interface == *port || others_port
            };
            if let Some(other) = all.iter().find(taken) {
                say("ports", format!("{port} is already used by {}", other.path));
            }
        }
    }
    problems
}

fn is_name(name: &str) -> bool {
    let good = |char: char| char.is_ascii_graphic() && !matches!(char, '/' | ':');
    (1..=NAME_MAX).contains(&name.len()) && name.chars().all(good) && !name.starts_with('.')
}

#[cfg(test)]
mod tests {
    use super::{BondMode, bonds, interfaces, problems};
    use crate::{Management, Network};
    use serde::Deserialize;

    #[derive(Deserialize)]
    struct File {
        #[serde(default)]
        management: Vec<Management>,
        #[serde(default)]
        network: Vec<Network>,
    }

    fn read(text: &str) -> Result<File, String> {
        let file: File = toml::from_str(text).map_err(|error| error.to_string())?;
        let problems = problems(&interfaces(&file.management, &file.network));
        if problems.is_empty() { Ok(file) } else { Err(problems.join("\n")) }
    }

    #[test]
    fn a_bond_is_as_it_is_written() {
        let file = read(
            "[[management]]\ninterface = 'bond0'\nvlan = 7\n\
             bond = { ports = ['eth0', 'eth1'], mode = '802.3ad', lacp_rate = 'fast' }\n\
             [[network]]\ninterface = 'bond0'\naddress = '10.77.0.1'\n",
        )
        .unwrap();
        let all = bonds(&interfaces(&file.management, &file.network));
        let [bond] = all.as_slice() else { panic!("{all:?}") };
        assert_eq!((bond.mode, bond.fast_lacp, &bond.primary), (BondMode::Lacp, true, &None));
        assert_eq!((bond.name.as_str(), bond.ports.join(" ")), ("bond0", "eth0 eth1".to_owned()));
        let wanted = file.management[0].wanted("box");
        assert_eq!(wanted.name().as_deref(), Some("bond0.7"));
    }

    #[test]
    fn every_mistake_is_told_at_once() {
        let error = read(
            "[[management]]\ninterface = 'bond0'\n\
             bond = { ports = ['eth0', 'eth0', 'a b'], mode = 'active-backup', primary = 'eth9' }\n\
             [[management]]\ninterface = 'bond1'\n\
             bond = { ports = ['eth0', 'eth2'], mode = 'balance-alb', lacp_rate = 'slow' }\n\
             [[management]]\ninterface = 'bond1'\nvlan = 3\n\
             bond = { ports = [], mode = '802.3ad', primary = 'eth2' }\n\
             [[network]]\ninterface = 'eth2'\naddress = '10.77.0.1'\n",
        )
        .err()
        .unwrap();
        let expected = [
            "management[0].bond.ports: eth0 is listed twice",
            "management[0].bond.ports: \"a b\" is not a valid interface name",
            "management[0].bond.primary: eth9 is not one of the bond's ports",
            "management[0].bond.ports: eth0 is already used by management[1]",
            "management[0].bond.ports: eth0 is already used by management[1]",
            "management[1].bond.lacp_rate: only allowed with mode 802.3ad",
            "management[1].bond.ports: eth0 is already used by management[0]",
            "management[1].bond.ports: eth2 is already used by network[0]",
            "management[2].bond.ports: expected 1 to 8 NICs, found 0",
            "management[2].bond.primary: not allowed with 802.3ad: it uses all NICs",
            "management[2].bond.ports: management[1] has other settings for this bond",
        ];
        assert_eq!(error.lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_mode_that_there_is_not_is_told_with_its_line() {
        let text = "[[management]]\ninterface = 'bond0'\nbond = { ports = ['a'], mode = 'fast' }\n";
        let error = read(text).err().unwrap();
        assert!(error.contains("at line 3") && error.contains("unknown variant `fast`"), "{error}");
    }
}
