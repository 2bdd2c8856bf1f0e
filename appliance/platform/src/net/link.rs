//! Ethernet interfaces of the machine, and the choice of an interface that has a link.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use stdx::MacAddr;

use super::InterfaceSelector;
use super::netlink::Netlink;
use crate::Error;

/// Maximum time until the kernel has found a NIC.
const APPEAR: Duration = Duration::from_secs(30);
/// Maximum wait for a link, during negotiation and the learning state of a switch port.
const CARRIER: Duration = Duration::from_secs(30);
/// Interval between two checks of the interfaces.
const LOOK: Duration = Duration::from_millis(50);

/// Ethernet interface of the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Name of the interface, for example `eth0`.
    pub name: String,
    /// Index of the interface in the kernel.
    pub index: u32,
    /// Hardware address. For a port of a bond, its permanent address.
    pub mac: MacAddr,
}

/// Brings the loopback interface up. The kernel adds its addresses.
///
/// # Errors
/// The kernel refuses the change.
pub async fn loopback_up() -> Result<(), Error> {
    let index = read(Path::new("/sys/class/net/lo/ifindex")).and_then(|text| text.parse().ok());
    Netlink::open()?.up(index.unwrap_or(1)).await
}

/// Brings up all interfaces that match `wanted`, and returns the first one that gets a link.
pub(super) async fn choose(netlink: &Netlink, wanted: &InterfaceSelector) -> Result<Link, Error> {
    let named = || links().into_iter().filter(|link| wanted.is(link)).collect();
    let found = until(APPEAR, named).await;
    if found.is_empty() {
        return Err(Error::NoAddress { reason: format!("{wanted} does not exist") });
    }
    for link in &found {
        netlink.up(link.index).await?;
    }
    let ready = |link: &&Link| has_carrier(&link.name);
    let with_link = until(CARRIER, || found.iter().filter(ready).cloned().collect()).await;
    with_link.into_iter().next().ok_or_else(|| {
        let names: Vec<_> = found.iter().map(|link| link.name.as_str()).collect();
        Error::NoAddress { reason: format!("no link on {}: is the cable in?", names.join(", ")) }
    })
}

/// Repeats `look` until it finds an interface or the time limit is over.
async fn until(limit: Duration, look: impl Fn() -> Vec<Link>) -> Vec<Link> {
    let deadline = Instant::now() + limit;
    loop {
        let found = look();
        if !found.is_empty() || Instant::now() >= deadline {
            return found;
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Returns true if the interface has a carrier.
pub(super) fn has_carrier(name: &str) -> bool {
    read(&Path::new("/sys/class/net").join(name).join("carrier")).as_deref() == Some("1")
}

fn read(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

/// Returns the Ethernet interfaces in the order of their indexes.
pub fn links() -> Vec<Link> {
    let folders = fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
    let mut links: Vec<_> = folders.filter_map(|entry| link(&entry.path())).collect();
    links.sort_by_key(|link| link.index);
    links
}

fn link(path: &Path) -> Option<Link> {
    // The type 1 is ARPHRD_ETHER, which excludes loopback and tunnels.
    if read(&path.join("type"))? != "1" {
        return None;
    }
    Some(Link {
        name: path.file_name()?.to_str()?.to_owned(),
        index: read(&path.join("ifindex"))?.parse().ok()?,
        // A port of a bond temporarily has the address of the bond.
        mac: read(&path.join("bonding_slave/perm_hwaddr"))
            .or_else(|| read(&path.join("address")))?
            .parse()
            .ok()?,
    })
}
