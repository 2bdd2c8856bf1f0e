//! Served networks on interfaces that people use too. Another DHCP server assigns the box's
//! address. The box serves a network once it has an address, and restarts if the address changes.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use config::Config;
use platform::net;
use rustix::process::{Signal, getpid, kill_process};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

/// Maximum wait for an address at a start. A later address restarts the process.
const FIRST: Duration = Duration::from_secs(8);
/// Interval of reading the addresses.
const LOOK: Duration = Duration::from_secs(1);
/// Time that a new address must stay unchanged before use. A DHCP server that often changes its
/// offers must not stop the services.
const SETTLED: Duration = Duration::from_secs(15);

/// Waits for the address of each shared network of `config`, and watches the address in `tasks`.
pub async fn join(config: &mut Config, tasks: &mut JoinSet<()>) {
    let deadline = Instant::now() + FIRST;
    for network in config.network.iter_mut().filter(|network| network.is_shared()) {
        let interface = network.interface.clone();
        let mut found = address(&interface, None).await;
        while found.is_none() && Instant::now() < deadline {
            sleep(LOOK).await;
            found = address(&interface, None).await;
        }
        match found {
            Some((address, prefix)) => {
                network.address = format!("{address}/{prefix}");
                network.joined = true;
                // The network was checked with another address when the configuration was read.
                config.networks.extend(network.spec().plan().ok());
            }
            None => {
                tracing::warn!(
                    interface,
                    "this network is served when the box has an address on it"
                );
            }
        }
        tasks.spawn(follow(interface, found.map(|(address, _)| address)));
    }
}

/// Terminates the process if the interface gets another address than `served`, the one in use.
async fn follow(interface: String, served: Option<Ipv4Addr>) {
    let mut other: Option<(Ipv4Addr, Instant)> = None;
    loop {
        sleep(LOOK).await;
        let now = address(&interface, served).await.map(|(address, _)| address);
        other = match (now, other) {
            (Some(now), _) if Some(now) == served => None,
            (None, _) => None,
            (Some(now), Some((seen, since))) if now == seen => Some((seen, since)),
            (Some(now), _) => Some((now, Instant::now())),
        };
        if let Some((address, _)) = other.filter(|(_, since)| since.elapsed() >= SETTLED) {
            tracing::warn!(interface, %address, "the address has changed: restarting");
            if let Err(errno) = kill_process(getpid(), Signal::TERM) {
                tracing::error!(reason = %errno, "the box keeps its old address");
            }
            return;
        }
    }
}

/// Returns the address by which people reach the box on an interface. Prefers `kept`.
async fn address(interface: &str, kept: Option<Ipv4Addr>) -> Option<(Ipv4Addr, u8)> {
    let seen = net::look().await.ok()?;
    let card = seen.into_iter().find(|seen| seen.link.name == interface)?;
    choose(&card.addresses, kept)
}

fn choose(addresses: &[(IpAddr, u8)], kept: Option<Ipv4Addr>) -> Option<(Ipv4Addr, u8)> {
    let usable = addresses.iter().filter_map(|(address, prefix)| match address {
        IpAddr::V4(address) if !address.is_link_local() => Some((*address, *prefix)),
        _ => None,
    });
    usable.min_by_key(|(address, _)| (Some(*address) != kept, *address))
}

#[cfg(test)]
mod tests {
    use super::choose;

    #[test]
    fn the_address_is_one_that_somebody_gave() {
        let all = ["169.254.7.7", "fe80::1", "10.0.0.9", "10.0.0.5"];
        let all: Vec<_> = all.iter().map(|text| (text.parse().unwrap(), 24)).collect();
        let found = |kept: Option<&str>| {
            let kept = kept.map(|text| text.parse().unwrap());
            choose(&all, kept).unwrap().0.to_string()
        };
        assert_eq!(found(None), "10.0.0.5");
        assert_eq!(found(Some("10.0.0.9")), "10.0.0.9");
        assert_eq!(found(Some("10.0.0.7")), "10.0.0.5");
        assert_eq!(choose(&all[..2], None), None);
    }
}
