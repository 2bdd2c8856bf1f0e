//! The rack as the box is told of it: who is registered, who has a reserved address, what each
//! should boot, which loader it is named.

use std::collections::{BTreeSet, HashMap};
use std::net::Ipv4Addr;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use dhcp::{Config, Directory, Mode, Netboot, Observer, Range, Reservation, Seen, Stage, Subnet};
use netboot::fallback::{EFI, Event, Fallback, Learned};
use netboot::{AgentBoot, Boot, Plan, script};
use stdx::MacAddr;

use crate::machine::Firmware;

/// The box.
pub const SERVER: Ipv4Addr = Ipv4Addr::new(10, 64, 0, 1);
/// The relay of the second network.
pub const RELAY: Ipv4Addr = Ipv4Addr::new(10, 65, 0, 1);
/// The other server, where the box only names boot files.
pub const OTHER_SERVER: Ipv4Addr = Ipv4Addr::new(10, 64, 0, 2);
/// Lease time: so short that a run sees many renewals and addresses that change hands.
pub const LEASE_SECS: u32 = 300;
/// Most machines in a run: what both networks hold, with room for the others.
pub const MAX_MACHINES: u32 = 40_000;
/// The first pool address of either network, behind its own.
const POOL: u32 = 256;
/// The first address for reservations outside of the pool.
const OUTSIDE: u32 = 240 << 8;

/// What the box knows of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// It is registered, its address comes from the pool.
    Registered,
    /// It is registered with an address.
    Reserved(Ipv4Addr),
    /// Nothing.
    Stranger,
}

/// The records.
#[derive(Debug)]
pub struct Rack {
    /// By the machine's index.
    pub classes: Vec<Class>,
    reserved: BTreeSet<Ipv4Addr>,
    /// Who was last given an address: bounded by the networks.
    pub given: HashMap<Ipv4Addr, MacAddr>,
    /// What was learned of each machine's loaders; only for those who load `snponly.efi` first.
    fallbacks: Vec<Option<Fallback>>,
}

/// The hardware address of a machine; `generation` tells a visitor from the one before it.
pub fn mac_of(index: u32, generation: u16) -> MacAddr {
    let ([_, a, b, c], [high, low]) = (index.to_be_bytes(), generation.to_be_bytes());
    MacAddr([2, high, low, a, b, c])
}

/// The machine with a hardware address.
pub fn index_of(mac: MacAddr) -> usize {
    let [_, _, _, a, b, c] = mac.0;
    u32::from_be_bytes([0, a, b, c]) as usize
}

/// Addresses of the pool of the box's own network, or of the one behind the relay.
pub fn pool(relayed: bool, size: u32) -> Range {
    let network = Ipv4Addr::new(10, if relayed { 65 } else { 64 }, 0, 0).to_bits();
    let first = Ipv4Addr::from_bits(network + POOL);
    Range { first, last: Ipv4Addr::from_bits(network + POOL + size.max(1) - 1) }
}

/// An address of the box's own network that no pool has.
pub fn outside(index: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(Ipv4Addr::new(10, 64, 0, 0).to_bits() + OUTSIDE + index)
}

/// The box's settings for pools of these sizes.
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

impl Rack {
    /// The records of machines of these classes.
    pub fn new(classes: Vec<Class>) -> Self {
        let reserved = classes.iter().filter_map(|class| match class {
            Class::Reserved(address) => Some(*address),
            _ => None,
        });
        Self {
            reserved: reserved.collect(),
            given: HashMap::new(),
            fallbacks: vec![None; classes.len()],
            classes,
        }
    }

    /// What is known of a hardware address.
    pub fn class(&self, mac: MacAddr) -> Class {
        let class = self.classes.get(index_of(mac)).filter(|_| mac == mac_of_first(mac));
        class.copied().unwrap_or(Class::Stranger)
    }

    /// Learns from what a machine does, if its firmware has loaders to choose from.
    pub fn learn(&mut self, mac: MacAddr, firmware: Firmware, event: Event<'_>, now: Instant) {
        let choosing = matches!(firmware, Firmware::Edk2Pxe | Firmware::Edk2Http);
        if !choosing || self.class(mac) == Class::Stranger {
            return;
        }
        let fallback = &mut self.fallbacks[index_of(mac)];
        let fallback = fallback.get_or_insert_with(|| Fallback::new(EFI, "snponly.efi"));
        fallback.next(event, now);
    }

    /// What was learned outlives the box, as text; what it was waiting for does not.
    pub fn restart(&mut self) {
        for fallback in self.fallbacks.iter_mut().flatten() {
            let kept = fallback.learned().to_string();
            *fallback = kept.parse::<Learned>().expect("what is printed can be read").into();
        }
    }

    /// What the machine's script says.
    pub fn script(&self, mac: MacAddr) -> String {
        let agent = AgentBoot {
            base_url: format!("http://{SERVER}:7080/agent"),
            kernel: "vmlinuz-x86_64".to_owned(),
            initrd: "initramfs-x86_64".to_owned(),
            grpc_authority: format!("{SERVER}:42113"),
            worker_id: mac.to_string(),
            ..AgentBoot::default()
        };
        if self.class(mac) == Class::Stranger {
            return script::stranger(&agent);
        }
        let hardware = format!("default/nuc-{}", index_of(mac));
        script::render(&Plan { mac, hardware, addresses: Vec::new(), boot: Boot::Agent(agent) })
    }
}

fn mac_of_first(mac: MacAddr) -> MacAddr {
    mac_of(u32::try_from(index_of(mac)).unwrap_or(0), 0)
}

impl Directory for Rack {
    fn by_mac(&self, mac: MacAddr) -> Option<Reservation> {
        let fallback = self.fallbacks.get(index_of(mac)).and_then(Option::as_ref);
        let netmask = Ipv4Addr::new(255, 255, 0, 0);
        let record = match self.class(mac) {
            Class::Stranger => return None,
            Class::Registered => Reservation::without_address(mac),
            Class::Reserved(address) => Reservation::new(mac, address, netmask),
        };
        Some(Reservation {
            hostname: Some(format!("nuc-{}", index_of(mac))),
            gateway: Some(SERVER),
            lease_secs: LEASE_SECS,
            netboot: Netboot::Allowed,
            installing: true,
            ipxe_binary: fallback.map(|fallback| fallback.loader().to_owned()),
            ..record
        })
    }

    fn is_reserved(&self, address: Ipv4Addr) -> bool {
        self.reserved.contains(&address)
    }
}

/// What the DHCP service told of, until somebody reads it.
#[derive(Debug, Default)]
pub struct Story(Mutex<Vec<Told>>);

/// What is of use to others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// A machine looks for a server, with this program.
    Looks(MacAddr, Stage),
    /// A machine has this address.
    Has(MacAddr, Ipv4Addr),
}

impl Story {
    /// What was told since the last call.
    pub fn take(&self) -> Vec<Told> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Observer for Story {
    fn seen(&self, seen: Seen) {
        let told = match seen {
            Seen::Discover { mac, stage } => Told::Looks(mac, stage),
            Seen::Acked { mac, address, .. } => Told::Has(mac, address),
            _ => return,
        };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(told);
    }
}
