//! Bonds: several NICs as one interface (the kernel's Documentation/networking/bonding.rst). The
//! network stays up if a cable breaks or is unplugged.

use std::fs;
use std::path::Path;

use rtnetlink::packet_route::link::{
    BondLacpRate, BondMode as KernelMode, BondXmitHashPolicy, InfoKind, LinkMessage,
};
use rtnetlink::{LinkBond, LinkMessageBuilder, LinkUnspec};
use stdx::MacAddr;

use super::link::{Link, links};
use super::netlink::Netlink;
use crate::Error;

/// Interval in milliseconds at which the kernel checks the link of each port.
const LOOK_MILLIS: u32 = 100;

/// Mode in which a bond uses its ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BondMode {
    /// Uses one active port at a time. Works with any switch, also with two switches.
    ActiveBackup,
    /// Uses all ports, negotiated with the switch (IEEE 802.1AX, LACP).
    Lacp,
    /// Uses all ports, another one for each neighbor (ARP replies). Works with any switch.
    BalanceAlb,
}

impl BondMode {
    /// Returns the kernel's name of the mode, such as `802.3ad`.
    pub fn word(self) -> &'static str {
        match self {
            Self::ActiveBackup => "active-backup",
            Self::Lacp => "802.3ad",
            Self::BalanceAlb => "balance-alb",
        }
    }

    fn kernel(self) -> KernelMode {
        match self {
            Self::ActiveBackup => KernelMode::ActiveBackup,
            Self::Lacp => KernelMode::Ieee8023Ad,
            Self::BalanceAlb => KernelMode::BalanceAlb,
        }
    }
}

/// Configuration of a bond.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bond {
    /// Name of the bond, for example `bond0`.
    pub name: String,
    /// Names of the ports. The bond gets the hardware address of the first existing port.
    pub ports: Vec<String>,
    /// Mode in which the ports are used.
    pub mode: BondMode,
    /// Preferred port, used whenever it has a link. Not supported with LACP.
    pub primary: Option<String>,
    /// Requests LACP messages from the switch every second instead of every 30 seconds. Only used
    /// with LACP.
    pub fast_lacp: bool,
}

impl Bond {
    /// Returns the netlink message that creates the bond.
    fn message(&self, MacAddr(mac): MacAddr, primary: Option<u32>) -> LinkMessage {
        let bond = LinkBond::new(&self.name).address(mac.to_vec());
        let mut bond = bond.mode(self.mode.kernel()).miimon(LOOK_MILLIS);
        if let Some(primary) = primary {
            bond = bond.primary(primary);
        }
        if self.mode == BondMode::Lacp {
            bond = bond.xmit_hash_policy(BondXmitHashPolicy::Layer23);
            if self.fast_lacp {
                bond = bond.ad_lacp_rate(BondLacpRate::Fast);
            }
        }
        bond.build()
    }
}

/// Returns the netlink message that sets the preferred port.
fn prefer(bond: u32, primary: u32) -> LinkMessage {
    let bond = LinkMessageBuilder::<LinkBond>::new_with_info_kind(InfoKind::Bond).index(bond);
    bond.primary(primary).build()
}

/// Returns the netlink message that adds a port to a bond. The port must be down.
fn join(port: u32, bond: u32) -> LinkMessage {
    LinkUnspec::new_with_index(port).controller(bond).build()
}

/// Returns the option `what` of `bond` from sysfs, or `None` if the interface is not a bond.
fn option(bond: &str, what: &str) -> Option<String> {
    let path = Path::new("/sys/class/net").join(bond).join("bonding").join(what);
    let text = fs::read_to_string(path).ok()?;
    Some(text.split_whitespace().next().unwrap_or_default().to_owned())
}

/// Returns the bond or bridge of which the interface `name` is a port, if any.
pub(super) fn master(name: &str) -> Option<String> {
    let path = fs::read_link(Path::new("/sys/class/net").join(name).join("master")).ok()?;
    Some(path.file_name()?.to_str()?.to_owned())
}

/// Creates or changes the bond with the ports that exist. A bond in another mode is removed and
/// created again. Returns the missing ports. A repeated call adds ports that appeared later.
///
/// # Errors
/// No port exists, another interface has the name, or the kernel refuses a change.
pub async fn bond(wanted: &Bond) -> Result<Vec<String>, Error> {
    let all = links();
    let find = |name: &String| all.iter().find(|link| link.name == *name);
    let here: Vec<&Link> = wanted.ports.iter().filter_map(find).collect();
    let missing = wanted.ports.iter().filter(|name| find(name).is_none()).cloned().collect();
    let name = &wanted.name;
    let Some(first) = here.first() else {
        let reason = format!("all ports of {name} are missing: {}", wanted.ports.join(", "));
        return Err(Error::NoAddress { reason });
    };
    let mode = option(name, "mode");
    let old = find(name);
    if old.is_some() && mode.is_none() {
        let reason = format!("the interface {name} already exists, and is not a bond");
        return Err(Error::NoAddress { reason });
    }
    let old = old.filter(|_| mode.as_deref() == Some(wanted.mode.word()));
    let outside = |port: &&Link| master(&port.name).as_ref() != Some(name);
    let outside: Vec<&Link> = here.iter().copied().filter(outside).collect();
    let primary = wanted.primary.as_ref().and_then(find).map(|link| link.index);
    let prefers = primary.filter(|_| option(name, "primary") != wanted.primary);
    if old.is_some() && outside.is_empty() && prefers.is_none() {
        return Ok(missing);
    }
    let netlink = Netlink::open()?;
    let index = match (old, find(name)) {
        (Some(old), _) => old.index,
        (None, other) => {
            if let Some(other) = other {
                netlink.remove(other).await?;
            }
            netlink.make(wanted.message(first.mac, primary), name).await?
        }
    };
    if let Some(primary) = prefers {
        netlink.change(prefer(index, primary), name).await?;
    }
    for port in outside {
        netlink.down(port).await?;
        netlink.change(join(port.index, index), &port.name).await?;
        tracing::info!(bond = name, port = port.name, mode = wanted.mode.word(), "added a port");
    }
    netlink.up(index).await?;
    Ok(missing)
}

#[cfg(test)]
mod tests;
