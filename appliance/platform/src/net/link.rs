//! Which network interface to use.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use stdx::MacAddr;

use super::Which;
use super::netlink::Netlink;
use crate::Error;

/// How long a network card may take to be probed.
const APPEAR: Duration = Duration::from_secs(30);
/// How long a link may take to come up: negotiation, and a switch port that is learning.
const CARRIER: Duration = Duration::from_secs(30);
/// How often to look.
const LOOK: Duration = Duration::from_millis(50);

/// An Ethernet interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// The kernel's name: `eth0`.
    pub name: String,
    /// The kernel's number.
    pub index: u32,
    /// Its hardware address.
    pub mac: MacAddr,
}

/// Bring the loopback interface up; its addresses come with it.
///
/// # Errors
/// When the kernel refuses.
pub async fn loopback_up() -> Result<(), Error> {
    let index = read(Path::new("/sys/class/net/lo/ifindex")).and_then(|text| text.parse().ok());
    Netlink::open()?.up(index.unwrap_or(1)).await
}

/// The interface that is wanted, up and with a link.
pub(super) async fn choose(netlink: &Netlink, wanted: &Which) -> Result<Link, Error> {
    let named = || links().into_iter().filter(|link| wanted.is(link)).collect();
    let found = until(APPEAR, named).await;
    if found.is_empty() {
        return Err(Error::NoAddress { reason: format!("there is no {wanted}") });
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

/// Look until there is something or the time is over.
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

fn has_carrier(name: &str) -> bool {
    read(&Path::new("/sys/class/net").join(name).join("carrier")).as_deref() == Some("1")
}

fn read(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

/// Ethernet interfaces in the kernel's order.
pub fn links() -> Vec<Link> {
    let folders = fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
    let mut links: Vec<_> = folders.filter_map(|entry| link(&entry.path())).collect();
    links.sort_by_key(|link| link.index);
    links
}

fn link(path: &Path) -> Option<Link> {
    // ARPHRD_ETHER: no loopback, no tunnels.
    if read(&path.join("type"))? != "1" {
        return None;
    }
    Some(Link {
        name: path.file_name()?.to_str()?.to_owned(),
        index: read(&path.join("ifindex"))?.parse().ok()?,
        // A port of a bond has the bond's address meanwhile.
        mac: read(&path.join("bonding_slave/perm_hwaddr"))
            .or_else(|| read(&path.join("address")))?
            .parse()
            .ok()?,
    })
}
