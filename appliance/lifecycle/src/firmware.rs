//! Box as firmware: the box is the only userland of its machine, and configures its own network.
//!
//! Never: a DHCP server by default. An interface without configuration is a DHCP client.

pub mod name;
pub mod names;
mod shared;
pub mod time;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use config::{Config, Management, Problems, SystemKind, load};
use mdns_sd::ServiceDaemon;
use platform::init::{self, BOOT, GUESSED_TIME, STATE};
use platform::net::{self, Address, Addressing, Bond, InterfaceConfig};
use platform::slots::BootVolume;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

/// Maximum wait for the NIC of a served network at the start.
const CARD: Duration = Duration::from_secs(10);
/// Interval of checking for a missing NIC, and of retrying to get an address.
const RETRY: Duration = Duration::from_secs(2);

/// Returns the folder of all files that must survive a restart.
pub fn state() -> PathBuf {
    Path::new(STATE).join("tinbox")
}

/// Reads `box.toml` from the boot volume. Ignores a file with a mistake, because a part of its
/// settings could start a rogue DHCP server. Safe mode and a lost store ignore the file.
pub fn config(is_lost: bool) -> Config {
    if is_lost || init::safe_mode().is_some() {
        return Config { images: None, ..Config::untold() };
    }
    load(&settings(), SystemKind::Firmware).unwrap_or_else(|problems: Problems| {
        eprintln!("error: {problems}");
        eprintln!("hint: mend box.toml on the volume TINBOX, then restart");
        Config::untold()
    })
}

/// Returns the path of the owner's configuration on the boot volume.
pub fn settings() -> PathBuf {
    Path::new(BOOT).join("box.toml")
}

/// Replaces `box.toml` with the text from a backup.
///
/// # Errors
/// The boot volume cannot be written.
pub fn replace_settings(text: &str) -> std::io::Result<()> {
    // Number that no other change had: the current second is far above the counted revisions.
    let now = jiff::Timestamp::now().as_second().rem_euclid(1 << 31);
    let number = u32::try_from(now).unwrap_or(u32::MAX);
    let replaced = BootVolume::own().replace_settings(text, number);
    replaced.map_err(|error| std::io::Error::other(stdx::chain(&error)))
}

/// Properties of the device that services need.
pub struct Firmware {
    /// Name of the box.
    pub name: String,
    /// Trust in the clock, and the source of its time.
    pub time: watch::Receiver<time::TimeSync>,
    /// Reason for safe mode; `None` in normal operation.
    pub safe_mode: Option<String>,
    _announced: Option<ServiceDaemon>,
}

/// Sets up the box's name, network and time, and maintains them in `tasks`. A served network whose
/// NIC is missing is logged, and gets its address when the NIC appears.
pub async fn begin(config: &mut Config, lost: Option<&str>, tasks: &mut JoinSet<()>) -> Firmware {
    let folder = state();
    let kept = (!init::without_state()).then_some(folder.as_path());
    let name = name::name(config.name.as_deref(), kept).await;
    if let Err(error) = init::set_host_name(&name) {
        let reason = stdx::chain(&error);
        tracing::warn!(reason, name, "cannot set the box's host name");
    }
    let announced = name::announce(&name).inspect_err(|error| {
        tracing::warn!(reason = format!("{error:#}"), "cannot announce the box's name");
    });
    let guessed = std::env::var_os(GUESSED_TIME).is_some();
    let (known, time) = watch::channel(time::at_start(guessed));
    let offered = time::OfferedServers::default();
    network(config, &name, &offered, tasks).await;
    let servers = config.time.servers.clone();
    tasks.spawn(async move { match time::keep(servers, offered, known).await {} });
    let safe_mode = init::safe_mode().or_else(|| lost.map(str::to_owned));
    Firmware { name, time, safe_mode, _announced: announced.ok() }
}

async fn network(
    config: &mut Config,
    name: &str,
    offered: &time::OfferedServers,
    tasks: &mut JoinSet<()>,
) {
    if let Err(error) = net::loopback_up().await {
        tracing::warn!(error = %stdx::chain(&error), "cannot enable the loopback interface");
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
            tracing::error!(interface, error, "this network is not served until its NIC appears");
            tasks.spawn(assign_when_there(plan.interface.clone(), address));
        }
        // The box is the default NTP server of its machines.
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
    // A port of a bond has no address of its own.
    let ports = bonds.iter().flat_map(|bond| bond.ports.iter().cloned());
    let known = racks.chain(ports).collect();
    let owner = Owner { name: name.to_owned(), offered: offered.clone() };
    tasks.spawn(manage(config.management.clone(), known, owner));
    tasks.spawn(keep_bonds(bonds));
    shared::join(config, tasks).await;
}

/// Creates a bond of its NICs that exist. Waits until `deadline` for missing NICs.
async fn make(bond: &Bond, deadline: Instant) {
    loop {
        match net::bond(bond).await {
            Ok(missing) if missing.is_empty() || Instant::now() >= deadline => return,
            Err(error) if Instant::now() >= deadline => {
                let (bond, error) = (&bond.name, stdx::chain(&error));
                tracing::error!(bond, error, "the bond does not exist yet; trying again");
                return;
            }
            Ok(_) | Err(_) => sleep(RETRY).await,
        }
    }
}

/// Adds NICs that appear later to their bonds, without end. Logs a bond's problem when it changes.
async fn keep_bonds(bonds: Vec<Bond>) {
    let mut logged = vec![String::new(); bonds.len()];
    while !bonds.is_empty() {
        for (bond, logged) in bonds.iter().zip(&mut logged) {
            let wrong = match net::bond(bond).await {
                Ok(missing) if missing.is_empty() => String::new(),
                Ok(missing) => format!("{} is missing", missing.join(", ")),
                Err(error) => stdx::chain(&error),
            };
            if wrong != *logged {
                let bond = &bond.name;
                match wrong.is_empty() {
                    true => tracing::info!(bond, "the bond has all its ports"),
                    false => tracing::warn!(bond, reason = wrong, "the bond is not complete"),
                }
                *logged = wrong;
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

/// Assigns the address of a served network when its missing NIC appears.
async fn assign_when_there(interface: String, address: Address) {
    while net::assign(&interface, &address).await.is_err() {
        sleep(RETRY).await;
    }
    tracing::info!(interface, "the NIC of this network has appeared");
}

/// Name of the box and NTP servers, which all management interfaces share.
#[derive(Clone)]
struct Owner {
    name: String,
    offered: time::OfferedServers,
}

/// Configures every management interface when its NIC and its cable are present: as `written` in
/// the settings, or else by DHCP. Interfaces in `known` have another use and are not changed.
async fn manage(written: Vec<Management>, mut known: BTreeSet<String>, owner: Owner) {
    let mut kept = JoinSet::new();
    for one in written {
        let wanted = one.wanted(&owner.name);
        // A VLAN makes another interface, which has a name of its own.
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

/// Maintains an interface's address without end: link-local until a DHCP server grants a lease.
async fn keep(wanted: InterfaceConfig, owner: Owner) {
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

async fn get(wanted: InterfaceConfig) -> net::ConfiguredInterface {
    let mut is_logged = false;
    loop {
        match net::configure(wanted.clone()).await {
            Ok(configured) => return configured,
            Err(error) if !is_logged => {
                tracing::info!(reason = %stdx::chain(&error), "still trying");
                is_logged = true;
            }
            Err(_) => {}
        }
        sleep(RETRY).await;
    }
}
