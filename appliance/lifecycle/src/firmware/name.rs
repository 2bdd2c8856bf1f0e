//! Name of the box, and its announcement by multicast DNS (RFC 6762).

use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use mdns_sd::{ServiceDaemon, ServiceInfo};
use platform::net;
use stdx::MacAddr;
use tokio::time::{Instant, sleep};

/// Maximum wait for the first NIC.
const CARD: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(100);
/// File with the generated name of the box, which stays the same if the order of the NICs changes.
const NAME: &str = "name";
/// Maximum size of [`NAME`] in bytes.
const NAME_MAX: u64 = 64;
/// Services that the box announces (RFC 6763), with their ports.
const SERVICES: [(&str, u16); 2] =
    [("_https._tcp.local.", 443), ("_tinkerbell._tcp.local.", 42113)];

/// Returns the name that the owner set, or else a name such as `box-7f3a`. A generated name ends
/// with the last two bytes of the MAC address of the first NIC at the first start. `state` is the
/// state folder, if the box has a state volume.
pub async fn name(given: Option<&str>, state: Option<&Path>) -> String {
    if let Some(given) = given {
        return given.to_owned();
    }
    if let Some(name) = state.and_then(first_name) {
        return name;
    }
    let deadline = Instant::now() + CARD;
    loop {
        match net::links().first() {
            Some(link) => {
                let name = by_card(link.mac);
                if let Some(state) = state {
                    keep(state, &name);
                }
                return name;
            }
            None if Instant::now() >= deadline => return by_card(MacAddr([0; 6])),
            None => sleep(LOOK).await,
        }
    }
}

/// Returns a name from the MAC address of the first NIC that is present now.
pub fn by_first_card() -> String {
    by_card(net::links().first().map_or(MacAddr([0; 6]), |link| link.mac))
}

/// Returns the name that the first start stored, or `None` if the file is missing or invalid.
fn first_name(state: &Path) -> Option<String> {
    let name = String::from_utf8(durable_file::read(&state.join(NAME), NAME_MAX).ok()??).ok()?;
    let name = name.trim();
    let end = name.strip_prefix("box-")?;
    let is_name = end.len() == 4 && end.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_name.then(|| name.to_owned())
}

fn keep(state: &Path, name: &str) {
    if let Err(error) = durable_file::replace(state, NAME, name.as_bytes()) {
        tracing::warn!(%error, name, "cannot save the box's name; it can change at the next start");
    }
}

fn by_card(MacAddr(mac): MacAddr) -> String {
    format!("box-{:02x}{:02x}", mac[4], mac[5])
}

/// Announces `NAME.local` on every network, with all addresses of the box on that network.
///
/// The announcement ends when the returned value is dropped.
pub fn announce(name: &str) -> anyhow::Result<ServiceDaemon> {
    let daemon = ServiceDaemon::new().context("cannot start multicast DNS")?;
    for (service, port) in SERVICES {
        let host = format!("{name}.local.");
        let info = ServiceInfo::new(service, name, &host, (), port, &[("path", "/")][..])
            .with_context(|| format!("cannot describe {service}"))?
            .enable_addr_auto();
        daemon.register(info).with_context(|| format!("cannot announce {service}"))?;
    }
    Ok(daemon)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_owner_s_name_comes_first() {
        assert_eq!(name(Some("cellar"), None).await, "cellar");
        assert_eq!(by_card(MacAddr([0x52, 0x54, 0, 1, 0x7f, 0x3a])), "box-7f3a");
    }

    #[tokio::test]
    async fn the_name_of_the_first_start_stays_whichever_card_is_the_first() {
        let folder = tempfile::tempdir().unwrap();
        let state = Some(folder.path());
        keep(folder.path(), "box-7f3a");
        assert_eq!(name(None, state).await, "box-7f3a");
        assert_eq!(name(Some("cellar"), state).await, "cellar", "the owner's goes first");
        assert_eq!(name(None, state).await, "box-7f3a");
        for damaged in ["", "box-7f3", "box-zzzz", "rm -rf"] {
            std::fs::write(folder.path().join(NAME), damaged).unwrap();
            assert_eq!(first_name(folder.path()), None, "{damaged:?}");
        }
    }
}
