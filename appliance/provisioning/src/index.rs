//! In-memory index for the boot services: machines by hardware address, IP address and agent, and
//! the workflow to run on each. [`crate::object_watcher`] updates the index from watches. The boot
//! services read the index for every packet.

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
pub use works::WorkflowProgress;

/// Index of machines and workflows. Clones share their data.
#[derive(Clone, Default)]
pub struct Index {
    /// Unfinished and finished workflows by machine and agent.
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
    /// IPv6 prefixes of the box's interfaces by name of their Network.
    prefixes: HashMap<String, u64>,
    /// Names of the networks on which machines may enroll.
    enrolling: HashSet<String>,
    /// Addresses of management controllers by bmc Machine.
    controllers: HashMap<ObjectKey, IpAddr>,
    /// Power states that the controllers report, by bmc Machine.
    powers: HashMap<ObjectKey, Power>,
    /// Progress of workflows for the status view.
    courses: HashMap<ObjectKey, Arc<WorkflowProgress>>,
}

impl Index {
    fn read(&self) -> RwLockReadGuard<'_, Tables> {
        self.tables.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Tables> {
        self.tables.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds or updates a Hardware. Returns new conflicts: addresses and agent IDs that another
    /// Hardware also claims.
    pub fn put_hardware(&self, hardware: Hardware) -> Vec<Contested> {
        let mut tables = self.write();
        let mut met = Vec::new();
        // Most updates change the status only. Unchanged addresses must not be reported again.
        if !tables.hardware.get(&hardware.key()).is_some_and(|old| same_ways(old, &hardware)) {
            tables.unlink(&hardware.key());
            met = tables.link(&hardware);
        }
        tables.hardware.insert(hardware.key(), Arc::new(hardware));
        met
    }

    /// Removes a Hardware and its claims.
    pub fn remove_hardware(&self, key: &ObjectKey) {
        let mut tables = self.write();
        tables.unlink(key);
        tables.hardware.remove(key);
    }

    /// Returns all machines, sorted by name.
    pub fn machines(&self) -> Vec<Arc<Hardware>> {
        let mut all: Vec<_> = self.read().hardware.values().cloned().collect();
        all.sort_by_cached_key(|one| one.key());
        all
    }

    /// Returns the machine with this hardware address.
    pub fn by_mac(&self, mac: MacAddr) -> Option<Arc<Hardware>> {
        let tables = self.read();
        tables.hardware.get(tables.by_mac.owner(&mac)?).cloned()
    }

    /// Returns the machine with this IP address: by its record, else by a lease, else by ARP.
    pub fn by_address(&self, address: IpAddr) -> Option<Arc<Hardware>> {
        let tables = self.read();
        let address = tables.twin(address).unwrap_or(address);
        if let Some(key) = tables.by_address.owner(&address) {
            return tables.hardware.get(key).cloned();
        }
        drop(tables);
        self.by_mac(self.holder(address)?)
    }

    /// True if a Hardware record contains this address.
    pub fn is_reserved(&self, address: IpAddr) -> bool {
        self.read().by_address.owner(&address).is_some()
    }

    /// Returns the holder of an address that is in no record: by a lease, else by ARP. With ARP, a
    /// machine is also known if another server gave it the address.
    pub fn holder(&self, address: IpAddr) -> Option<MacAddr> {
        let IpAddr::V4(leased) = address else { return None };
        let leased = self.read().leases.get(&leased).copied();
        leased.or_else(|| self.neighbour(address))
    }

    /// Returns the NIC that sent a request: by ARP, else by a lease.
    pub fn sender(&self, address: IpAddr) -> Option<MacAddr> {
        let leased = |address| self.read().leases.get(&address).copied();
        self.neighbour(address).or_else(|| match address {
            IpAddr::V4(address) => leased(address),
            IpAddr::V6(_) => None,
        })
    }

    /// Returns the kernel's neighbor entry for an IPv4 address on one of the box's own networks.
    pub fn neighbour(&self, address: IpAddr) -> Option<MacAddr> {
        let IpAddr::V4(address) = address else { return None };
        neighbors::hardware_address(address)
    }

    /// Returns the address that an interface was leased from a pool.
    pub fn lease_of(&self, mac: MacAddr) -> Option<IpAddr> {
        self.read().leaseholders.get(&mac).map(|address| IpAddr::V4(*address))
    }

    /// Records a lease from a pool.
    pub fn put_lease(&self, address: Ipv4Addr, mac: MacAddr) {
        let mut tables = self.write();
        tables.leases.insert(address, mac);
        tables.leaseholders.insert(mac, address);
    }

    /// Removes a lease by its address.
    pub fn remove_lease(&self, address: Ipv4Addr) {
        let mut tables = self.write();
        let Some(mac) = tables.leases.remove(&address) else { return };
        // The machine may have a newer lease of another address.
        if tables.leaseholders.get(&mac) == Some(&address) {
            tables.leaseholders.remove(&mac);
        }
    }

    /// Sets the IPv6 prefix of a network from the box's own address there.
    pub fn set_prefix(&self, network: &str, own: Ipv6Addr) {
        self.write().prefixes.insert(network.to_owned(), prefix(own));
    }

    /// Returns the IPv6 address of a machine whose record only has an IPv4 address. The IPv6
    /// address consists of the box's own prefix and the IPv4 address (`fd77::10.77.0.11`).
    pub fn ipv6_twin(&self, address: Ipv4Addr) -> Option<Ipv6Addr> {
        let tables = self.read();
        let prefix = tables.prefixes.values().next()?;
        let host = u128::from(address.to_bits());
        Some(Ipv6Addr::from_bits(u128::from(*prefix) << 64 | host))
    }

    /// Sets if machines may enroll on a network.
    pub fn set_enrolls(&self, network: &str, enrolls: bool) {
        let mut tables = self.write();
        if enrolls {
            tables.enrolling.insert(network.to_owned());
        } else {
            tables.enrolling.remove(network);
        }
    }

    /// True if machines may enroll on at least one network.
    pub fn enrolls(&self) -> bool {
        !self.read().enrolling.is_empty()
    }

    /// Sets the address of a management controller. A host name instead of an address removes the
    /// entry.
    pub fn put_controller(&self, key: ObjectKey, host: &str) {
        let mut tables = self.write();
        match host.parse() {
            Ok(address) => tables.controllers.insert(key, address),
            Err(_) => tables.controllers.remove(&key),
        };
    }

    /// Removes a management controller and its power state.
    pub fn remove_controller(&self, key: &ObjectKey) {
        let mut tables = self.write();
        tables.controllers.remove(key);
        tables.powers.remove(key);
    }

    /// Returns the address of a machine's management controller.
    pub fn controller_of(&self, hardware: &Hardware) -> Option<IpAddr> {
        let name = &hardware.spec.bmc_ref.as_ref()?.name;
        let key = ObjectKey::new(&hardware.metadata.namespace, name);
        self.read().controllers.get(&key).copied()
    }

    /// Finds a machine as [`Index::by_instance_id`] does, for an ID with dashes instead of colons.
    pub fn by_dashed_instance_id(&self, id: &str) -> Option<Arc<Hardware>> {
        self.by_id(|own| own.replace(':', "-") == id)
    }

    /// Returns the only machine with this instance ID. The UID is used for a Hardware without an
    /// instance ID.
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

    /// Returns the machine on which this agent runs.
    pub fn by_agent(&self, agent_id: &str) -> Option<Arc<Hardware>> {
        let tables = self.read();
        let hardware = |key: &ObjectKey| tables.hardware.get(key);
        let by_id = tables.by_agent.owner(&agent_id.to_owned()).and_then(hardware);
        let mac = agent_id.parse().ok();
        let by_mac = mac.and_then(|mac| tables.by_mac.owner(&mac)).and_then(hardware);
        match (by_id, by_mac) {
            // A record that a person wrote wins over an enrolled one, even if it does not contain
            // the agent ID.
            (Some(one), Some(other)) if enrolled_itself(one) && !enrolled_itself(other) => {
                Some(Arc::clone(other))
            }
            (one, other) => one.or(other).cloned(),
        }
    }

    /// Returns the machine to which this management controller belongs.
    pub fn by_machine(&self, machine: &ObjectKey) -> Option<Arc<Hardware>> {
        let tables = self.read();
        let owns = |hardware: &&Arc<Hardware>| {
            hardware.metadata.namespace == machine.namespace
                && hardware.spec.bmc_ref.as_ref().is_some_and(|bmc| bmc.name == machine.name)
        };
        tables.hardware.values().find(owns).cloned()
    }

    /// Returns the Workflow for which a machine boots the agent, if any.
    pub fn run_of(&self, hardware: &Hardware) -> Option<Arc<Run>> {
        let agents = match &hardware.spec.agent_id {
            Some(agent) => vec![agent.clone()],
            None => hardware.spec.macs().map(|mac| mac.to_string()).collect(),
        };
        self.runs.to_boot(&hardware.key(), &agents)
    }

    /// True if a Hardware or a Workflow names this agent.
    pub fn knows_agent(&self, agent_id: &str) -> bool {
        self.by_agent(agent_id).is_some() || self.runs.know(agent_id)
    }
}

/// Returns the first 64 bits of an address, which are the IPv6 prefix.
fn prefix(address: Ipv6Addr) -> u64 {
    u64::try_from(address.to_bits() >> 64).unwrap_or_default()
}

impl Tables {
    /// Returns the IPv4 address at the end of an IPv6 address that was derived by
    /// [`Index::ipv6_twin`].
    fn twin(&self, address: IpAddr) -> Option<IpAddr> {
        let IpAddr::V6(address) = address else { return None };
        let host = u64::try_from(address.to_bits() & u128::from(u64::MAX)).ok()?;
        let ours = self.prefixes.values().any(|own| *own == prefix(address));
        let host = u32::try_from(host).ok().filter(|_| ours)?;
        Some(Ipv4Addr::from_bits(host).into())
    }

    /// Adds the addresses and the agent ID of a machine. Returns the new conflicts.
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

    /// Removes the addresses and the agent ID of a machine.
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

/// True if enrollment made the record, and not a person.
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
