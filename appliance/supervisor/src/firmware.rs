//! The box as firmware: it is the whole userland of its machine, so its own network is its own to
//! bring up.
//!
//! Never: a DHCP server to be found by. What nobody configured is a client.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use platform::init::{BOOT, STATE};
use platform::net::{self, Address, Wanted};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::config::{Config, Home, Management, Problems, load};

/// How long the card of a rack's network may take to be there.
const CARD: Duration = Duration::from_secs(10);
/// Between two looks for one, and between two tries to get an address.
const RETRY: Duration = Duration::from_secs(2);

/// The folder of everything that must survive a restart.
pub fn state() -> PathBuf {
    Path::new(STATE).join("tinbox")
}

/// What the owner wrote on the boot volume. With a mistake in it the box does nothing of it: half
/// of what was meant may be a rogue server.
pub fn config() -> Config {
    let file = Path::new(BOOT).join("box.toml");
    load(&file, Home::Firmware).unwrap_or_else(|problems: Problems| {
        eprintln!("error: {problems}\nhint: mend box.toml on the volume TINBOX, then restart");
        Config::untold()
    })
}

/// Brings the box's own network up and keeps it so. Racks' networks whose cards are missing are
/// taken out of `config`, and said.
pub async fn network(config: &mut Config, tasks: &mut JoinSet<()>) {
    if let Err(error) = net::loopback_up().await {
        tracing::warn!(error = %stdx::chain(&error), "the box cannot speak to itself");
    }
    let deadline = Instant::now() + CARD;
    let mut served = Vec::new();
    for plan in std::mem::take(&mut config.networks) {
        let prefix = plan.subnets.first().map_or(24, |subnet| subnet.length);
        let address =
            Address { address: plan.address, prefix, router: None, name_servers: Vec::new() };
        match assign(&plan.interface, &address, deadline).await {
            Ok(()) => served.push(plan),
            Err(error) => {
                let (interface, error) = (&plan.interface, stdx::chain(&error));
                tracing::error!(interface, error, "this network is not served: is its card there?");
            }
        }
    }
    config.networks = served;
    let racks = config.network.iter().map(|rack| rack.interface.clone()).collect();
    tasks.spawn(manage(config.management.clone(), racks));
}

async fn assign(
    interface: &str,
    address: &Address,
    deadline: Instant,
) -> Result<(), platform::Error> {
    loop {
        match net::assign(interface, address).await {
            Err(_) if Instant::now() < deadline => sleep(RETRY).await,
            result => return result,
        }
    }
}

/// Every interface that is the owner's, as it is written or else by DHCP, whenever its card and its
/// cable come.
async fn manage(written: Vec<Management>, racks: BTreeSet<String>) {
    let mut kept = JoinSet::new();
    let mut known = racks;
    for one in written {
        known.insert(one.interface.clone());
        kept.spawn(keep(one.wanted()));
    }
    loop {
        for link in net::links() {
            if known.insert(link.name.clone()) {
                kept.spawn(keep(Management::by_dhcp(link.name).wanted()));
            }
        }
        sleep(RETRY).await;
    }
}

/// An address for this interface, for ever.
async fn keep(wanted: Wanted) {
    let mut told = false;
    loop {
        match net::configure(wanted.clone()).await {
            Ok(configured) => return net::keep(configured).await,
            Err(error) if !told => {
                tracing::info!(reason = %stdx::chain(&error), "still trying");
                told = true;
            }
            Err(_) => {}
        }
        sleep(RETRY).await;
    }
}
