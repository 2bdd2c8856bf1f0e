//! Use of each NIC: as configured, as proposed on a box without configuration (NW-2), and as chosen
//! by a person (NW-4). This module does not use the host.

use std::net::Ipv4Addr;

use config::{Config, Network};
use ipnet::Ipv4Net;
use status::view::Role;
use web::setup::NicSetup;

use crate::settings::roles::NicUse;

/// Candidates for the box's address on a provisioning network. The first free address is proposed.
const OWN: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 99, 0, 1), Ipv4Addr::new(10, 98, 0, 1)];
/// Prefix length of the addresses in [`OWN`], and of a typed address without prefix length.
const PREFIX: u8 = 24;
/// First and last host number of the default pool in a /24 network.
const POOL: (u8, u8) = (100, 199);

/// Returns the NICs with their configured or proposed use.
pub fn now(mut nics: Vec<NicSetup>, config: &Config) -> Vec<NicSetup> {
    if config.network.is_empty() && config.management.is_empty() {
        return proposed(nics);
    }
    let own = free(&nics);
    for nic in &mut nics {
        let network = config.network.iter().find(|network| network.interface == nic.name);
        let unused = |unused: &&config::Management| unused.interface == nic.name;
        let unused = config.management.iter().find(unused).is_some_and(|nic| nic.unused);
        nic.role = match network {
            Some(network) if network.is_shared() => Role::Both,
            Some(_) => Role::Provisioning,
            None if unused => Role::Unused,
            None => Role::Management,
        };
        nic.mode = network.map_or("off".to_owned(), |network| network.mode.to_string());
        nic.own = match network.filter(|network| !network.is_shared()) {
            Some(network) => network.address.clone(),
            None => own.clone(),
        };
        nic.pool = network.map(|network: &Network| network.pool.join(", ")).unwrap_or_default();
        nic.confirm = network.map(|network| network.confirm.clone()).unwrap_or_default();
    }
    nics
}

/// Proposes a use of each NIC. A single NIC is for management and provisioning, beside the existing
/// DHCP server. Of several NICs, the NIC with the default route is for management, and the next NIC
/// for provisioning. The others are unused.
fn proposed(mut nics: Vec<NicSetup>) -> Vec<NicSetup> {
    let own = free(&nics);
    let people = nics.iter().position(|nic| nic.default_route).unwrap_or(0);
    let machines = (0..nics.len()).find(|at| *at != people);
    let one = nics.len() == 1;
    for (at, nic) in nics.iter_mut().enumerate() {
        let (role, mode) = match at {
            _ if one => (Role::Both, "proxy"),
            at if at == people => (Role::Management, "off"),
            at if Some(at) == machines => (Role::Provisioning, "reserved"),
            _ => (Role::Unused, "off"),
        };
        (nic.role, nic.mode) = (role, mode.to_owned());
        nic.own.clone_from(&own);
    }
    nics
}

/// Returns the first address of [`OWN`] in a network where no NIC has an address.
fn free(nics: &[NicSetup]) -> String {
    let taken: Vec<Ipv4Net> = nics.iter().filter_map(|nic| nic.address.parse().ok()).collect();
    let is_free = |own: &&Ipv4Addr| !taken.iter().any(|net| net.contains(*own));
    let own = OWN.iter().find(is_free).unwrap_or(&OWN[0]);
    format!("{own}/{PREFIX}")
}

/// Returns the use to write for each NIC.
///
/// # Errors
/// A sentence about a choice that is not allowed.
pub fn wanted(nics: &[NicSetup]) -> Result<Vec<(String, NicUse)>, String> {
    let for_people = |nic: &NicSetup| matches!(nic.role, Role::Management | Role::Both);
    if !nics.iter().any(for_people) {
        return Err("One NIC must be for people, or this box cannot be reached: \
                    choose management or both."
            .to_owned());
    }
    let wanted: Result<Vec<_>, String> =
        nics.iter().map(|nic| Ok((nic.name.clone(), one(nic)?))).collect();
    wanted.and_then(apart)
}

/// Returns `wanted`, or an error sentence if two provisioning networks overlap.
fn apart(wanted: Vec<(String, NicUse)>) -> Result<Vec<(String, NicUse)>, String> {
    let mut nets: Vec<(&String, Ipv4Net)> = Vec::new();
    for (name, wanted) in &wanted {
        let NicUse::Machines { address, .. } = wanted else { continue };
        let Some(net) = net(address) else { continue };
        let overlaps = |other: &&(&String, Ipv4Net)| {
            other.1.contains(&net.network()) || net.contains(&other.1.network())
        };
        if let Some((other, _)) = nets.iter().find(overlaps) {
            return Err(format!(
                "{other} and {name} overlap: give the box an address of another network on \
                 {name}, such as 10.98.0.1/24."
            ));
        }
        nets.push((name, net));
    }
    Ok(wanted)
}

/// Returns the network of an address. The default prefix length is 24.
fn net(address: &str) -> Option<Ipv4Net> {
    if address.contains('/') {
        return address.parse().ok();
    }
    Ipv4Net::new(address.parse().ok()?, PREFIX).ok()
}

fn one(nic: &NicSetup) -> Result<NicUse, String> {
    let (name, mode) = (&nic.name, nic.mode.clone());
    match nic.role {
        Role::Management => Ok(NicUse::Management),
        Role::Unused => Ok(NicUse::Unused),
        Role::Both if matches!(mode.as_str(), "off" | "proxy") => Ok(NicUse::Both { mode }),
        Role::Both => Err(format!(
            "{name} is for people and machines, so another DHCP server gives the addresses there: \
             choose proxy or off. For addresses from this box, choose provisioning."
        )),
        Role::Provisioning => {
            let Some(net) = net(&nic.own) else {
                return Err(format!("{name} needs an address for the box, such as 10.99.0.1/24."));
            };
            let pool = if mode == "pool" { pool(nic, net)? } else { Vec::new() };
            Ok(NicUse::Machines { address: nic.own.clone(), mode, pool, confirm: confirmed(nic)? })
        }
    }
}

fn pool(nic: &NicSetup, net: Ipv4Net) -> Result<Vec<String>, String> {
    let ranges: Vec<String> = nic
        .pool
        .split(',')
        .map(|range| range.trim().to_owned())
        .filter(|it| !it.is_empty())
        .collect();
    if !ranges.is_empty() {
        return Ok(ranges);
    }
    if net.prefix_len() != PREFIX {
        return Err(format!("{} needs a pool of addresses: first-last.", nic.name));
    }
    let [a, b, c, _] = net.network().octets();
    let at = |last| Ipv4Addr::new(a, b, c, last);
    Ok(vec![format!("{}-{}", at(POOL.0), at(POOL.1))])
}

/// Returns the last digits of the MAC address if they confirm a pool. Only a pool on the NIC with
/// the default route needs digits (NW-4). A former confirmation stays if the default route moves.
fn confirmed(nic: &NicSetup) -> Result<String, String> {
    let digits: String = nic.mac.chars().filter(char::is_ascii_hexdigit).collect();
    let last = digits.get(digits.len().saturating_sub(4)..).unwrap_or_default();
    if nic.mode == "pool" && last.len() == 4 && nic.confirm.eq_ignore_ascii_case(last) {
        return Ok(last.to_ascii_lowercase());
    }
    if nic.mode != "pool" || !nic.default_route {
        return Ok(String::new());
    }
    Err(format!(
        "The default route uses {0}, so {0} is probably on your own network. To give addresses \
         there, type the last four digits of the MAC address of {0}.",
        nic.name
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nic(name: &str, address: &str, default_route: bool) -> NicSetup {
        let (mac, address) = ("00:e0:4c:68:AB:01".to_owned(), address.to_owned());
        NicSetup { name: name.to_owned(), mac, address, default_route, ..NicSetup::default() }
    }

    fn roles(nics: &[NicSetup]) -> Vec<(Role, &str)> {
        nics.iter().map(|nic| (nic.role, nic.mode.as_str())).collect()
    }

    #[test]
    fn a_proposal_never_gives_addresses_to_the_owners_network() {
        use Role::{Both, Management, Provisioning, Unused};
        let none = Config::untold();
        let one = now(vec![nic("eth0", "10.99.0.7/16", true)], &none);
        assert_eq!(roles(&one), [(Both, "proxy")]);
        let three = ["eth0", "eth1", "eth2"].map(|name| nic(name, "", name == "eth1"));
        let three = now(three.to_vec(), &none);
        let want = [(Provisioning, "reserved"), (Management, "off"), (Unused, "off")];
        assert_eq!(roles(&three), want);
        assert_eq!(three[0].own, "10.99.0.1/24");
        let two = now(vec![nic("a", "10.99.0.7/16", false), nic("b", "", false)], &none);
        assert_eq!(roles(&two), [(Management, "off"), (Provisioning, "reserved")]);
        assert_eq!(two[1].own, "10.98.0.1/24", "its own is taken");
        assert!(now(Vec::new(), &none).is_empty());
    }

    #[test]
    fn what_was_set_up_is_shown() {
        let text = "[[network]]\ninterface = 'eth1'\naddress = '10.77.0.1'\nmode = 'pool'\n\
            pool = ['10.77.0.5', '10.77.0.7']\n[[network]]\ninterface = 'eth3'\nmode = 'proxy'\n\
            [[management]]\ninterface = 'eth2'\nunused = true\n[boot]\nartifacts = '/'\n";
        let config = Config::read(text, config::SystemKind::Firmware).unwrap();
        let nics = ["eth0", "eth1", "eth2", "eth3"].map(|name| nic(name, "", false));
        let nics = now(nics.to_vec(), &config);
        use Role::{Both, Management, Provisioning, Unused};
        let want = [(Management, "off"), (Provisioning, "pool"), (Unused, "off"), (Both, "proxy")];
        assert_eq!(roles(&nics), want);
        assert_eq!(
            (nics[1].own.as_str(), nics[1].pool.as_str()),
            ("10.77.0.1", "10.77.0.5, 10.77.0.7")
        );
    }

    #[test]
    fn a_pool_on_the_way_out_wants_the_cards_digits() {
        let (mut out, other) = (nic("eth0", "", true), nic("eth1", "", false));
        let other = NicSetup { role: Role::Management, ..other };
        (out.role, out.mode, out.own) = (Role::Provisioning, "pool".into(), "10.9.0.1/24".into());
        for (typed, good) in [("", false), ("0000", false), ("ab0", false), ("aB01", true)] {
            out.confirm = typed.to_owned();
            let wanted = wanted(&[out.clone(), other.clone()]);
            assert_eq!(wanted.is_ok(), good, "{typed:?} {wanted:?}");
        }
        let NicUse::Machines { pool, confirm, .. } =
            wanted(&[out.clone(), other]).unwrap().remove(0).1
        else {
            panic!("it is for machines")
        };
        assert_eq!((pool[0].as_str(), confirm.as_str()), ("10.9.0.100-10.9.0.199", "ab01"));
        assert!(wanted(&[out.clone()]).unwrap_err().starts_with("One NIC must be for people"));
        let other = NicSetup { role: Role::Management, ..nic("eth1", "", false) };
        let same = NicSetup { name: "eth2".to_owned(), default_route: false, ..out.clone() };
        let same = wanted(&[out.clone(), other, same]).unwrap_err();
        assert!(same.starts_with("eth0 and eth2 overlap"), "{same}");
        out.role = Role::Both;
        assert!(wanted(&[out]).unwrap_err().contains("choose proxy or off"));
    }
}
