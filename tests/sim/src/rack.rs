//! Rack as the box's records describe it: registered machines, reserved addresses, boot files and
//! learned loaders.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use api::tinkerbell::{Hardware, State, Workflow};
use dhcp::{Config, DhcpEvent, Directory, Mode, Observer, Range, Stage, Subnet};
use netboot::fallback::Event;
use netboot::{Plans, script};
use provisioning::boot_token::BootTokens;
use provisioning::hardware_views::HardwareViews;
use provisioning::index::Index;
use provisioning::learned_loaders::{LearnedLoader, Loaders};
use serde_json::json;
use stdx::{Clock, MacAddr, SystemClock};

use crate::machine::Firmware;

/// Address of the box.
pub const SERVER: Ipv4Addr = Ipv4Addr::new(10, 64, 0, 1);
/// The relay of the second network.
pub const RELAY: Ipv4Addr = Ipv4Addr::new(10, 65, 0, 1);
/// Address of the other DHCP server, when the box is in proxy mode.
pub const OTHER_SERVER: Ipv4Addr = Ipv4Addr::new(10, 64, 0, 2);
/// Lease time: short enough for many renewals, and for addresses that change hands, in one run.
pub const LEASE_SECS: u32 = 300;
/// Maximum number of machines in a run: both networks hold them, with addresses to spare.
pub const MAX_MACHINES: u32 = 40_000;
/// Offset of the first pool address in either network.
const POOL: u32 = 256;
/// Offset of the first address for reservations outside of the pool.
const OUTSIDE: u32 = 240 << 8;

/// The namespace of every object.
const NAMESPACE: &str = "default";

/// Record that the box has of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Registered, with an address from the pool.
    Registered,
    /// Registered, with this reserved address.
    Reserved(Ipv4Addr),
    /// Unknown machine, without a record.
    Stranger,
}

/// Learned loaders that wait to be written; the queue has the product's own limit.
type Lessons = tokio::sync::mpsc::Receiver<LearnedLoader>;

/// Records of the machines, stored as in the product: Hardware and Workflows in the product's
/// index, which the boot services read through the product's adapters.
pub struct Rack {
    /// Class of each machine, by its index.
    pub classes: Vec<Class>,
    /// Last client that got an ACK for each address; at most one entry for each address of the
    /// networks.
    pub given: HashMap<Ipv4Addr, MacAddr>,
    views: HardwareViews,
    lessons: Lessons,
}

/// Hardware address of a machine; `generation` is another number at each visit of a visitor.
pub fn mac_of(index: u32, generation: u16) -> MacAddr {
    let ([_, a, b, c], [high, low]) = (index.to_be_bytes(), generation.to_be_bytes());
    MacAddr([2, high, low, a, b, c])
}

/// Index of the machine with a hardware address.
pub fn index_of(mac: MacAddr) -> usize {
    let [_, _, _, a, b, c] = mac.0;
    u32::from_be_bytes([0, a, b, c]) as usize
}

/// Pool of `size` addresses, at least one, in the box's own network or, with `relayed`, in the
/// network of the relay.
pub fn pool(relayed: bool, size: u32) -> Range {
    let network = Ipv4Addr::new(10, if relayed { 65 } else { 64 }, 0, 0).to_bits();
    let first = Ipv4Addr::from_bits(network + POOL);
    Range { first, last: Ipv4Addr::from_bits(network + POOL + size.max(1) - 1) }
}

/// Address number `index` of the box's own network that is in no pool.
pub fn outside(index: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(Ipv4Addr::new(10, 64, 0, 0).to_bits() + OUTSIDE + index)
}

/// DHCP configuration of the box. `own` and `relayed` are the sizes of the two pools; 0: no pool.
pub fn config(mode: Mode, own: u32, relayed: u32) -> Config {
    let subnet = |relayed: bool, size: u32| {
        let base = Ipv4Addr::new(10, if relayed { 65 } else { 64 }, 0, 0);
        let prefix = dhcp::Prefix::new(base, 16).expect("16 is a prefix length");
        let ranges = if size > 0 { vec![pool(relayed, size)] } else { Vec::new() };
        let gateway = Some(if relayed { RELAY } else { SERVER });
        Subnet { ranges, gateway, lease_secs: LEASE_SECS, ..Subnet::new(prefix) }
    };
    Config {
        mode,
        enroll: true,
        subnets: vec![subnet(false, own), subnet(true, relayed)],
        conflict_checks: true,
        ..Config::new("sim0", SERVER)
    }
}

/// Configuration of the box, the same for racks and fleets.
pub fn box_config() -> config::Config {
    // Each poll of a BMC is a step of `fleet::trial`, so polls are rare.
    let text = format!(
        "[network]\ninterface = 'sim0'\naddress = '{SERVER}/16'\n[boot]\nartifacts = '/'\n\
         [bmc]\npoll_secs = 300\n"
    );
    config::Config::read(&text, config::SystemKind::Guest).expect("it is a good configuration")
}

fn name_of(index: usize) -> String {
    format!("nuc-{index}")
}

fn hardware(index: usize, address: Option<Ipv4Addr>) -> Hardware {
    let mac = mac_of(u32::try_from(index).unwrap_or(0), 0).to_string();
    let mut dhcp = json!({ "mac": mac, "hostname": name_of(index), "lease_time": LEASE_SECS });
    if let Some(address) = address {
        dhcp["ip"] = json!({ "address": address, "netmask": "255.255.0.0", "gateway": SERVER });
    }
    let interface = json!({ "dhcp": dhcp, "netboot": { "allowPXE": true } });
    let object = json!({
        "metadata": { "name": name_of(index), "namespace": NAMESPACE },
        "spec": { "interfaces": [interface] },
    });
    serde_json::from_value(object).expect("it is a Hardware")
}

/// A Workflow that waits for a machine's agent.
fn workflow(index: usize) -> Workflow {
    let mut workflow = Workflow::default();
    workflow.metadata.name = name_of(index);
    workflow.metadata.namespace = NAMESPACE.to_owned();
    workflow.metadata.uid = name_of(index);
    workflow.spec.hardware_ref = name_of(index);
    workflow.status.state = State::Pending;
    workflow
}

/// The product's directory of machines, with a fixed key of boot tokens.
pub fn views(
    index: Index,
    loaders: Arc<Loaders>,
    clock: &Arc<dyn Clock>,
    config: &Arc<config::Config>,
) -> HardwareViews {
    HardwareViews {
        index,
        tokens: BootTokens::with_key([7; 32]),
        pin: "77".repeat(32).parse().expect("it is a pin"),
        config: Arc::clone(config),
        clock: Arc::clone(clock),
        loaders,
    }
}

impl Rack {
    /// The records of machines of these classes.
    pub fn new(classes: Vec<Class>) -> Self {
        let index = Index::default();
        index.set_enrolls("sim0", true);
        for (at, class) in classes.iter().enumerate() {
            let address = match class {
                Class::Stranger => continue,
                Class::Registered => None,
                Class::Reserved(address) => Some(*address),
            };
            index.put_hardware(hardware(at, address));
            index.runs.put(&workflow(at));
        }
        let (loaders, lessons) = Loaders::new();
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let views = views(index, Arc::new(loaders), &clock, &Arc::new(box_config()));
        Self { classes, given: HashMap::new(), views, lessons }
    }

    /// Class of the machine with a hardware address.
    pub fn class(&self, mac: MacAddr) -> Class {
        let class = self.classes.get(index_of(mac)).filter(|_| mac == mac_of_first(mac));
        class.copied().unwrap_or(Class::Stranger)
    }

    /// Learns a loader from an event of a machine, if its firmware has loaders to choose from.
    pub fn learn(&mut self, mac: MacAddr, firmware: Firmware, event: Event<'_>, now: Instant) {
        if !matches!(firmware, Firmware::Edk2Pxe | Firmware::Edk2Http) {
            return;
        }
        let Some(hardware) = self.views.index.by_mac(mac) else { return };
        let loaders = &self.views.loaders;
        match event {
            Event::Requested => drop(loaders.asked(&hardware, mac, "snponly.efi", now)),
            Event::Fetched(file) => loaders.fetched(&hardware, mac, file, now),
            Event::Ipxe => loaders.spoke(&hardware, mac, now),
        }
        self.keep();
    }

    /// Writes learned loaders into the Hardware, as the box does.
    fn keep(&mut self) {
        while let Ok(lesson) = self.lessons.try_recv() {
            let machines = self.views.index.by_agent(&mac_text(&lesson.hardware().name));
            let Some(known) = machines else { continue };
            let mut hardware = Hardware::clone(&known);
            let (name, value) = lesson.annotation();
            hardware.metadata.annotations.insert(name.to_owned(), value);
            self.views.index.put_hardware(hardware);
        }
    }

    /// Restarts the learning: learned loaders are on the Hardware and survive, pending observations
    /// do not.
    pub fn restart(&mut self) {
        let (loaders, lessons) = Loaders::new();
        self.lessons = lessons;
        self.views.loaders = Arc::new(loaders);
    }

    /// iPXE script that the box serves to a machine.
    pub fn script(&self, mac: MacAddr) -> String {
        match Plans::by_mac(&self.views, mac) {
            Some(plan) => script::render(&plan),
            None => script::unknown_machine(
                &self.views.unknown_machine().expect("this network enrolls"),
            ),
        }
    }

    /// The machines for queries of the DHCP engine.
    pub fn directory(&self) -> &impl Directory {
        &self.views
    }
}

fn mac_of_first(mac: MacAddr) -> MacAddr {
    mac_of(u32::try_from(index_of(mac)).unwrap_or(0), 0)
}

/// ID of the agent of the machine with this name: the machine's MAC address.
fn mac_text(name: &str) -> String {
    let index = name.strip_prefix("nuc-").and_then(|index| index.parse().ok()).unwrap_or(0);
    mac_of(index, 0).to_string()
}

/// Events of the DHCP service, until [`Story::take`] reads them.
#[derive(Debug, Default)]
pub struct Story(Mutex<Vec<Told>>);

/// Event of the DHCP service that other parts of the box use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// A machine sent a DISCOVER from this program.
    Looks(MacAddr, Stage),
    /// A machine got an ACK for this address.
    Has(MacAddr, Ipv4Addr),
}

impl Story {
    /// Takes the events since the last call.
    pub fn take(&self) -> Vec<Told> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Observer for Story {
    fn observe(&self, event: DhcpEvent) {
        let told = match event {
            DhcpEvent::Discover { mac, stage } => Told::Looks(mac, stage),
            DhcpEvent::Acked { mac, address, .. } => Told::Has(mac, address),
            _ => return,
        };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(told);
    }
}
