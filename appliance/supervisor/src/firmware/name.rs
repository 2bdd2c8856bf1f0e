//! What the box is called, and that it can be found by that name (multicast DNS, RFC 6762).

use std::time::Duration;

use anyhow::Context as _;
use mdns_sd::{ServiceDaemon, ServiceInfo};
use platform::net;
use stdx::MacAddr;
use tokio::time::{Instant, sleep};

/// How long the first network card may take to be there.
const CARD: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(100);
/// What the box offers to whoever looks around (RFC 6763), with its ports.
const SERVICES: [(&str, u16); 2] =
    [("_https._tcp.local.", 443), ("_tinkerbell._tcp.local.", 42113)];

/// The name that its owner gave it, or else `box-7f3a`: by the end of the first card's hardware
/// address.
pub async fn name(given: Option<&str>) -> String {
    if let Some(given) = given {
        return given.to_owned();
    }
    let deadline = Instant::now() + CARD;
    loop {
        match net::links().first() {
            Some(link) => return by_card(link.mac),
            None if Instant::now() >= deadline => return by_card(MacAddr([0; 6])),
            None => sleep(LOOK).await,
        }
    }
}

/// By the first card that is there now.
pub fn by_first_card() -> String {
    by_card(net::links().first().map_or(MacAddr([0; 6]), |link| link.mac))
}

fn by_card(MacAddr(mac): MacAddr) -> String {
    format!("box-{:02x}{:02x}", mac[4], mac[5])
}

/// Answers for `NAME.local` on every network, with every address that the box has there.
///
/// Lives as long as what it returns.
pub fn announce(name: &str) -> anyhow::Result<ServiceDaemon> {
    let daemon = ServiceDaemon::new().context("cannot answer multicast DNS")?;
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
        assert_eq!(name(Some("cellar")).await, "cellar");
        assert_eq!(by_card(MacAddr([0x52, 0x54, 0, 1, 0x7f, 0x3a])), "box-7f3a");
    }
}
