//! What the boot services need to know, in memory: machines by hardware address, IP address and
//! agent, and which workflow each is to run. Fed by [`crate::object_watcher`] from watches; read on
//! every packet.

mod claims;
mod contested;
mod enrollment;
mod neighbors;
mod requester;
mod works;

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use agent_service::{Run, Runs};
use api::meta::ObjectKey;
use api::tinkerbell::{AUTO_DISCOVERED, Hardware};
use status::view::Power;
use stdx::MacAddr;

use claims::{Claimant, Claims};
pub use contested::Contested;
pub use requester::Requester;
pub use works::Course;

/// The index; clones share it.
#[derive(Clone, Default)]
pub struct Index {
    /// The workflows.
    pub runs: Runs,
    tables: Arc<RwLock<Tables>>,
}

#[derive(Default)]
struct Tables {
    hardware: HashMap<ObjectKey, Arc<Hardware>>,
    by_mac: Claims<MacAddr>,
    by_address: Claims<IpAddr>,
    by_agent: Claims<String>,
    leases: HashMap<Ipv4Addr, MacAddr>,
    leaseholders: HashMap<MacAddr, Ipv4Addr>,
    /// The IPv6 networks of the box's interfaces, by their Network.
    prefixes: HashMap<String, u64>,
    /// Names of the networks on which machines may enrol.
    enrolling: HashSet<String>,
    /// Addresses of management controllers, by their bmc Machine.
    controllers: HashMap<ObjectKey, IpAddr>,
    /// What they say of their machines' power.
    powers: HashMap<ObjectKey, Power>,
    /// What people are told of workflows.
    courses: HashMap<ObjectKey, Arc<Course>>,
}

impl Index {
    fn read(&self) -> RwLockReadGuard<'_, Tables> {
        self.tables.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Tables> {
        self.tables.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Take a Hardware in, or its new version. Returns what it and others claim both, where that is
    /// new.
    pub fn put_hardware(&self, hardware: Hardware) -> Vec<Contested> {
        let mut tables = self.write();
        let mut met = Vec::new();
        // Most writes are of the status: the ways in stay, and are not warned of again.
        if !tables.hardware.get(&hardware.key()).is_some_and(|old| same_ways(old, &hardware)) {
            tables.unlink(&hardware.key());
            met = tables.link(&hardware);
        }
        tables.hardware.insert(hardware.key(), Arc::new(hardware));
        met
    }

    /// Forget a Hardware.
    pub fn remove_hardware(&self, key: &ObjectKey) {
        let mut tables = self.write();
        tables.unlink(key);
        tables.hardware.remove(key);
    }

    /// Every machine, by name.
    pub fn machines(&self) -> Vec<Arc<Hardware>> {
        let mut all: Vec<_> = self.read().hardware.values().cloned().collect();
        all.sort_by_cached_key(|one| one.key());
        all
    }

    /// The machine with this hardware address.
    pub fn by_mac(&self, mac: MacAddr) -> Option<Arc<Hardware>> {
        let tables = self.read();
        tables.hardware.get(tables.by_mac.owner(&mac)?).cloned()
    }

    /// The machine that holds this address: by its record, else by a lease, else by what it answers
    /// to ARP.
    pub fn by_address(&self, address: IpAddr) -> Option<Arc<Hardware>> {
        let tables = self.read();
        let address = tables.twin(address).unwrap_or(address);
        if let Some(key) = tables.by_address.owner(&address) {
            return tables.hardware.get(key).cloned();
        }
        drop(tables);
        self.by_mac(self.holder(address)?)
    }

    /// Whether some record has this address.
    pub fn is_reserved(&self, address: IpAddr) -> bool {
        self.read().by_address.owner(&address).is_some()
    }

    /// Who holds an address that no record has: by a lease, else by what it answers to ARP, which
    /// is how a machine is known whose address another server gave.
    pub fn holder(&self, address: IpAddr) -> Option<MacAddr> {
        let IpAddr::V4(leased) = address else { return None };
        let leased = self.read().leases.get(&leased).copied();
        leased.or_else(|| self.neighbour(address))
    }

    /// The NIC that a request came from: by what it answers to ARP, else by a lease.
    pub fn sender(&self, address: IpAddr) -> Option<MacAddr> {
        let leased = |address| self.read().leases.get(&address).copied();
        self.neighbour(address).or_else(|| match address {
            IpAddr::V4(address) => leased(address),
            IpAddr::V6(_) => None,
        })
    }

    /// What the kernel knows of an IPv4 address on one of the box's own links.
    pub fn neighbour(&self, address: IpAddr) -> Option<MacAddr> {
        let IpAddr::V4(address) = address else { return None };
        neighbors::hardware_address(address)
    }

    /// The address that an interface has from a pool.
    pub fn lease_of(&self, mac: MacAddr) -> Option<IpAddr> {
        self.read().leaseholders.get(&mac).map(|address| IpAddr::V4(*address))
    }

    /// Remember who was given an address from a pool.
    pub fn put_lease(&self, address: Ipv4Addr, mac: MacAddr) {
        let mut tables = self.write();
        tables.leases.insert(address, mac);
        tables.leaseholders.insert(mac, address);
    }

    /// Forget who was given an address.
    pub fn remove_lease(&self, address: Ipv4Addr) {
        let mut tables = self.write();
        let Some(mac) = tables.leases.remove(&address) else { return };
        // It may have another by now.
        if tables.leaseholders.get(&mac) == Some(&address) {
            tables.leaseholders.remove(&mac);
        }
    }

    /// Remember the IPv6 network of an interface, by the box's own address there.
    pub fn set_prefix(&self, network: &str, own: Ipv6Addr) {
        self.write().prefixes.insert(network.to_owned(), prefix(own));
    }

    /// The IPv6 address of a machine whose record has but an IPv4 one: on the box's own IPv6
    /// network, ending in the other (`fd77::10.77.0.11`).
    pub fn ipv6_twin(&self, address: Ipv4Addr) -> Option<Ipv6Addr> {
        let tables = self.read();
        let prefix = tables.prefixes.values().next()?;
        let host = u128::from(address.to_bits());
        Some(Ipv6Addr::from_bits(u128::from(*prefix) << 64 | host))
    }

    /// Remember whether machines may enrol on a network.
    pub fn set_enrolls(&self, network: &str, enrolls: bool) {
        let mut tables = self.write();
        if enrolls {
            tables.enrolling.insert(network.to_owned());
        } else {
            tables.enrolling.remove(network);
        }
    }

    /// Whether machines may enrol on some network.
    pub fn enrolls(&self) -> bool {
        !self.read().enrolling.is_empty()
    }

    /// Remember where a management controller is.
    pub fn put_controller(&self, key: ObjectKey, host: &str) {
        let mut tables = self.write();
        match host.parse() {
            Ok(address) => tables.controllers.insert(key, address),
            Err(_) => tables.controllers.remove(&key),
        };
    }

    /// Forget a management controller.
    pub fn remove_controller(&self, key: &ObjectKey) {
        let mut tables = self.write();
        tables.controllers.remove(key);
        tables.powers.remove(key);
    }

    /// The address of a machine's management controller.
    pub fn controller_of(&self, hardware: &Hardware) -> Option<IpAddr> {
        let name = &hardware.spec.bmc_ref.as_ref()?.name;
        let key = ObjectKey::new(&hardware.metadata.namespace, name);
        self.read().controllers.get(&key).copied()
    }

    /// As [`Index::by_instance_id`], of an id with dashes for its colons.
    pub fn by_dashed_instance_id(&self, id: &str) -> Option<Arc<Hardware>> {
        self.by_id(|own| own.replace(':', "-") == id)
    }

    /// The one machine with this instance id, or this uid where it has none.
    pub fn by_instance_id(&self, id: &str) -> Option<Arc<Hardware>> {
        self.by_id(|own| own == id)
    }

    fn by_id(&self, is_asked: impl Fn(&str) -> bool) -> Option<Arc<Hardware>> {
        let tables = self.read();
        let has = |hardware: &&Arc<Hardware>| {
            let instance = hardware.spec.metadata.as_ref().and_then(|it| it.instance.as_ref());
            match instance.map_or("", |instance| &instance.id) {
                "" => is_asked(&hardware.metadata.uid),
                own => is_asked(own),
            }
        };
        let mut found = tables.hardware.values().filter(has);
        found.next().filter(|_| found.next().is_none()).cloned()
    }

    /// The machine this agent runs on.
    pub fn by_agent(&self, agent_id: &str) -> Option<Arc<Hardware>> {
        let tables = self.read();
        let hardware = |key: &ObjectKey| tables.hardware.get(key);
        let by_id = tables.by_agent.owner(&agent_id.to_owned()).and_then(hardware);
        let mac = agent_id.parse().ok();
        let by_mac = mac.and_then(|mac| tables.by_mac.owner(&mac)).and_then(hardware);
        match (by_id, by_mac) {
            // What a person wrote need not name the agent.
            (Some(one), Some(other)) if enrolled_itself(one) && !enrolled_itself(other) => {
                Some(Arc::clone(other))
            }
            (one, other) => one.or(other).cloned(),
        }
    }

    /// The machine this management controller belongs to.
    pub fn by_machine(&self, machine: &ObjectKey) -> Option<Arc<Hardware>> {
        let tables = self.read();
        let owns = |hardware: &&Arc<Hardware>| {
            hardware.metadata.namespace == machine.namespace
                && hardware.spec.bmc_ref.as_ref().is_some_and(|bmc| bmc.name == machine.name)
        };
        tables.hardware.values().find(owns).cloned()
    }

    /// The Workflow a machine is to boot the agent OS for, if any.
    pub fn run_of(&self, hardware: &Hardware) -> Option<Arc<Run>> {
        let agents = match &hardware.spec.agent_id {
            Some(agent) => vec![agent.clone()],
            None => hardware.spec.macs().map(|mac| mac.to_string()).collect(),
        };
        self.runs.to_boot(&hardware.key(), &agents)
    }

    /// Whether some Hardware or some Workflow speaks of this agent.
    pub fn knows_agent(&self, agent_id: &str) -> bool {
        self.by_agent(agent_id).is_some() || self.runs.know(agent_id)
    }
}

/// The first 64 bits of an address: an IPv6 network.
fn prefix(address: Ipv6Addr) -> u64 {
    u64::try_from(address.to_bits() >> 64).unwrap_or_default()
}

impl Tables {
    /// The IPv4 address that an IPv6 one of our making ends in.
    fn twin(&self, address: IpAddr) -> Option<IpAddr> {
        let IpAddr::V6(address) = address else { return None };
        let host = u64::try_from(address.to_bits() & u128::from(u64::MAX)).ok()?;
        let ours = self.prefixes.values().any(|own| *own == prefix(address));
        let host = u32::try_from(host).ok().filter(|_| ours)?;
        Some(Ipv4Addr::from_bits(host).into())
    }

    /// Add the ways to a machine. Returns what others claim too, where that is new.
    fn link(&mut self, hardware: &Hardware) -> Vec<Contested> {
        let claimant = claimant(hardware);
        let mut met = Vec::new();
        for mac in hardware.spec.macs() {
            met.extend(Contested::of("MAC", &mac, self.by_mac.add(mac, &claimant)));
        }
        for address in hardware.spec.addresses() {
            let claimants = self.by_address.add(address, &claimant);
            met.extend(Contested::of("address", &address, claimants));
        }
        if let Some(agent) = &hardware.spec.agent_id {
            let claimants = self.by_agent.add(agent.clone(), &claimant);
            met.extend(Contested::of("agent ID", agent, claimants));
        }
        met
    }

    /// Take the ways to a machine back.
    fn unlink(&mut self, key: &ObjectKey) {
        let Some(hardware) = self.hardware.get(key).cloned() else { return };
        let claimant = claimant(&hardware);
        hardware.spec.macs().for_each(|mac| self.by_mac.remove(&mac, &claimant));
        hardware.spec.addresses().for_each(|it| self.by_address.remove(&it, &claimant));
        if let Some(agent) = &hardware.spec.agent_id {
            self.by_agent.remove(agent, &claimant);
        }
    }
}

fn claimant(hardware: &Hardware) -> Claimant {
    (enrolled_itself(hardware), hardware.metadata.creation_timestamp, hardware.key())
}

/// True if no person wrote it.
fn enrolled_itself(hardware: &Hardware) -> bool {
    hardware.metadata.labels.get(AUTO_DISCOVERED).is_some_and(|it| it == "true")
}

fn same_ways(old: &Hardware, new: &Hardware) -> bool {
    claimant(old) == claimant(new)
        && old.spec.agent_id == new.spec.agent_id
        && old.spec.macs().eq(new.spec.macs())
        && old.spec.addresses().eq(new.spec.addresses())
}

#[cfg(test)]
mod tests;
