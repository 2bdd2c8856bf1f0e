//! Several cards as one link (the kernel's Documentation/networking/bonding.rst), so that a cable
//! may break or be pulled.

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

/// How often the kernel looks whether a port has its link, in milliseconds.
const LOOK_MILLIS: u32 = 100;

/// How a bond uses its ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BondMode {
    /// One at a time; any switch, any two switches.
    ActiveBackup,
    /// All, by agreement with the switch (IEEE 802.1AX, LACP).
    Lacp,
    /// All, by answering each neighbour from another port; any switch.
    BalanceAlb,
}

impl BondMode {
    /// The kernel's word, which is everybody's.
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

/// A bond.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bond {
    /// What it is called: `bond0`.
    pub name: String,
    /// The names of its ports. It has the hardware address of the first one that is there.
    pub ports: Vec<String>,
    /// How it uses them.
    pub mode: BondMode,
    /// The port that is used whenever it has a link; not with LACP.
    pub primary: Option<String>,
    /// Ask the switch to speak every second, and not every thirty; only with LACP.
    pub fast_lacp: bool,
}

impl Bond {
    /// What makes it.
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

/// What has a bond prefer the port `primary`.
fn prefer(bond: u32, primary: u32) -> LinkMessage {
    let bond = LinkMessageBuilder::<LinkBond>::new_with_info_kind(InfoKind::Bond).index(bond);
    bond.primary(primary).build()
}

/// What takes a port, which must be down, into a bond.
fn join(port: u32, bond: u32) -> LinkMessage {
    LinkUnspec::new_with_index(port).controller(bond).build()
}

/// What the kernel says of a bond; `None`: it is none.
fn said(bond: &str, what: &str) -> Option<String> {
    let path = Path::new("/sys/class/net").join(bond).join("bonding").join(what);
    let text = fs::read_to_string(path).ok()?;
    Some(text.split_whitespace().next().unwrap_or_default().to_owned())
}

/// The link that the link of this name is a port of.
pub(super) fn master(name: &str) -> Option<String> {
    let path = fs::read_link(Path::new("/sys/class/net").join(name).join("master")).ok()?;
    Some(path.file_name()?.to_str()?.to_owned())
}

/// Makes the bond what it shall be, as far as its ports are there: made where it is not there yet,
/// made anew where it has another mode. Returns the ports that are missing. Whoever calls it now
/// and then has ports that come later taken in.
///
/// # Errors
/// When none of the ports is there, the name is another interface's, or the kernel refuses.
pub async fn bond(wanted: &Bond) -> Result<Vec<String>, Error> {
    let all = links();
    let find = |name: &String| all.iter().find(|link| link.name == *name);
    let here: Vec<&Link> = wanted.ports.iter().filter_map(find).collect();
    let missing = wanted.ports.iter().filter(|name| find(name).is_none()).cloned().collect();
    let name = &wanted.name;
    let Some(first) = here.first() else {
        let reason = format!("none of the ports of {name} is there: {}", wanted.ports.join(", "));
        return Err(Error::NoAddress { reason });
    };
    let mode = said(name, "mode");
    let old = find(name);
    if old.is_some() && mode.is_none() {
        let reason = format!("there is an interface called {name} already, which is no bond");
        return Err(Error::NoAddress { reason });
    }
    let old = old.filter(|_| mode.as_deref() == Some(wanted.mode.word()));
    let outside = |port: &&Link| master(&port.name).as_ref() != Some(name);
    let outside: Vec<&Link> = here.iter().copied().filter(outside).collect();
    let primary = wanted.primary.as_ref().and_then(find).map(|link| link.index);
    let prefers = primary.filter(|_| said(name, "primary") != wanted.primary);
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
        tracing::info!(bond = name, port = port.name, mode = wanted.mode.word(), "a port is in");
    }
    netlink.up(index).await?;
    Ok(missing)
}

#[cfg(test)]
mod tests;
