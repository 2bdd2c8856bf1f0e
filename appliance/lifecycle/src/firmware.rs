//! The box as firmware: it is the whole userland of its machine, so its own network is its own to
//! bring up.
//!
//! Never: a DHCP server to be found by. What nobody configured is a client.

pub mod name;
mod shared;
pub mod time;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use config::{Config, Home, Management, Problems, load};
use mdns_sd::ServiceDaemon;
use platform::init::{self, BOOT, GUESSED_TIME, STATE};
use platform::net::{self, Address, Addressing, Bond, Wanted};
use platform::slots::BootVolume;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

/// How long the card of a rack's network may take to be there.
const CARD: Duration = Duration::from_secs(10);
/// Between two looks for one, and between two tries to get an address.
const RETRY: Duration = Duration::from_secs(2);

/// The folder of everything that must survive a restart.
pub fn state() -> PathBuf {
    Path::new(STATE).join("tinbox")
}

/// What the owner wrote on the boot volume. With a mistake in it the box does nothing of it: half
/// of what was meant may be a rogue server. In safe mode, also where the store is lost, nobody asks
/// what is written there.
pub fn config(is_lost: bool) -> Config {
    if is_lost || init::safe_mode().is_some() {
        return Config { images: None, ..Config::untold() };
    }
    load(&settings(), Home::Firmware).unwrap_or_else(|problems: Problems| {
        eprintln!("error: {problems}\nhint: mend box.toml on the volume TINBOX, then restart");
        Config::untold()
    })
}

/// What the owner wrote.
pub fn settings() -> PathBuf {
    Path::new(BOOT).join("box.toml")
}

/// Writes it anew, out of a backup.
///
/// # Errors
/// The boot volume does not take it.
pub fn replace_settings(text: &str) -> std::io::Result<()> {
    // A number that no other change had: seconds are far above what they are counted to.
    let now = jiff::Timestamp::now().as_second().rem_euclid(1 << 31);
    let number = u32::try_from(now).unwrap_or(u32::MAX);
    let replaced = BootVolume::own().replace_settings(text, number);
    replaced.map_err(|error| std::io::Error::other(stdx::chain(&error)))
}

/// What the box is beside its services.
pub struct Firmware {
    /// What it is called.
    pub name: String,
    /// How far its clock can be believed.
    pub time: watch::Receiver<time::Known>,
    /// Why it is in safe mode, if it is.
    pub safe_mode: Option<String>,
    _announced: Option<ServiceDaemon>,
}

/// Gives the box its name, its network and its time, and keeps them, in `tasks`. Racks' networks
/// whose cards are missing are taken out of `config`, and said.
pub async fn begin(config: &mut Config, lost: Option<&str>, tasks: &mut JoinSet<()>) -> Firmware {
    let folder = state();
    let kept = (!init::without_state()).then_some(folder.as_path());
    let name = name::name(config.name.as_deref(), kept).await;
    if let Err(error) = init::set_host_name(&name) {
        let reason = stdx::chain(&error);
        tracing::warn!(reason, name, "the kernel does not take the box's name");
    }
    let announced = name::announce(&name).inspect_err(|error| {
        tracing::warn!(reason = format!("{error:#}"), "the box is not found by its name");
    });
    let guessed = std::env::var_os(GUESSED_TIME).is_some();
    let (known, time) = watch::channel(time::at_start(guessed));
    let offered = time::Offered::default();
    network(config, &name, &offered, tasks).await;
    let servers = config.time.servers.clone();
    tasks.spawn(async move { match time::keep(servers, offered, known).await {} });
    let safe_mode = init::safe_mode().or_else(|| lost.map(str::to_owned));
    Firmware { name, time, safe_mode, _announced: announced.ok() }
}

async fn network(
    config: &mut Config,
    name: &str,
    offered: &time::Offered,
    tasks: &mut JoinSet<()>,
) {
    if let Err(error) = net::loopback_up().await {
        tracing::warn!(error = %stdx::chain(&error), "the box cannot speak to itself");
    }
    let deadline = Instant::now() + CARD;
    let bonds = config.bonds();
    for bond in &bonds {
        make(bond, deadline).await;
    }
    let mut served = Vec::new();
    for mut plan in std::mem::take(&mut config.networks) {
        let prefix = plan.subnets.first().map_or(24, |subnet| subnet.length);
        let address =
            Address { address: plan.address, prefix, router: None, name_servers: Vec::new() };
        if let Err(error) = assign(&plan.interface, &address, deadline).await {
            let (interface, error) = (&plan.interface, stdx::chain(&error));
            tracing::error!(interface, error, "this network is not served until its card comes");
            tasks.spawn(assign_when_there(plan.interface.clone(), address));
        }
        // Who does not say otherwise has his machines ask the box.
        for subnet in &mut plan.subnets {
            if subnet.time_servers.is_empty() {
                subnet.time_servers.push(plan.address);
            }
        }
        served.push(plan);
    }
    config.networks = served;
    let racks = config.network.iter().filter(|rack| !rack.is_shared());
    let racks = racks.map(|rack| rack.interface.clone());
    // A port has no address of its own.
    let ports = bonds.iter().flat_map(|bond| bond.ports.iter().cloned());
    let known = racks.chain(ports).collect();
    let owner = Owner { name: name.to_owned(), offered: offered.clone() };
    tasks.spawn(manage(config.management.clone(), known, owner));
    tasks.spawn(keep_bonds(bonds));
    shared::join(config, tasks).await;
}

/// Makes a bond of those of its cards that come in time.
async fn make(bond: &Bond, deadline: Instant) {
    loop {
        match net::bond(bond).await {
            Ok(missing) if missing.is_empty() || Instant::now() >= deadline => return,
            Err(error) if Instant::now() >= deadline => {
                let (bond, error) = (&bond.name, stdx::chain(&error));
                tracing::error!(bond, error, "there is no such link yet; still trying");
                return;
            }
            Ok(_) | Err(_) => sleep(RETRY).await,
        }
    }
}

/// Takes cards in that come later, for ever; what is wrong with a bond is said when it changes.
async fn keep_bonds(bonds: Vec<Bond>) {
    let mut said = vec![String::new(); bonds.len()];
    while !bonds.is_empty() {
        for (bond, said) in bonds.iter().zip(&mut said) {
            let wrong = match net::bond(bond).await {
                Ok(missing) if missing.is_empty() => String::new(),
                Ok(missing) => format!("it is without {}, which is not there", missing.join(", ")),
                Err(error) => stdx::chain(&error),
            };
            if wrong != *said {
                let bond = &bond.name;
                match wrong.is_empty() {
                    true => tracing::info!(bond, "it has all its ports"),
                    false => tracing::warn!(bond, reason = wrong, "it is not whole"),
                }
                *said = wrong;
            }
        }
        sleep(RETRY).await;
    }
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

/// Gives a rack's card its address when it comes later.
async fn assign_when_there(interface: String, address: Address) {
    while net::assign(&interface, &address).await.is_err() {
        sleep(RETRY).await;
    }
    tracing::info!(interface, "the card of this network is there");
}

/// What concerns every interface that is the owner's.
#[derive(Clone)]
struct Owner {
    name: String,
    offered: time::Offered,
}

/// Every interface that is the owner's, as it is written or else by DHCP, whenever its card and its
/// cable come; but not those that are `known` to be something else.
async fn manage(written: Vec<Management>, mut known: BTreeSet<String>, owner: Owner) {
    let mut kept = JoinSet::new();
    for one in written {
        let wanted = one.wanted(&owner.name);
        // In a VLAN it is another interface, which is named once more.
        known.extend(wanted.name());
        known.insert(one.interface);
        if !one.unused {
            kept.spawn(keep(wanted, owner.clone()));
        }
    }
    loop {
        for link in net::links() {
            if known.insert(link.name.clone()) {
                let wanted = Management::by_dhcp(link.name).wanted(&owner.name);
                kept.spawn(keep(wanted, owner.clone()));
            }
        }
        sleep(RETRY).await;
    }
}

/// An address for this interface, for ever: one that the box takes itself until a server gives one.
async fn keep(wanted: Wanted, owner: Owner) {
    let by_dhcp = wanted.addressing == Addressing::Dhcp && wanted.vlan.is_none();
    let interface = wanted.interface.clone();
    let meanwhile = async {
        if by_dhcp {
            match net::stand_in(interface).await {}
        }
        std::future::pending().await
    };
    let configured = tokio::select! {
        configured = get(wanted) => configured,
        never = meanwhile => match never {},
    };
    net::leave_link_local(configured.interface()).await;
    owner.offered.set(configured.interface(), configured.time_servers());
    net::keep(configured).await;
}

async fn get(wanted: Wanted) -> net::Configured {
    let mut told = false;
    loop {
        match net::configure(wanted.clone()).await {
            Ok(configured) => return configured,
            Err(error) if !told => {
                tracing::info!(reason = %stdx::chain(&error), "still trying");
                told = true;
            }
            Err(_) => {}
        }
        sleep(RETRY).await;
    }
}
