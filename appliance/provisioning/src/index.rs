//! In-memory index for the boot services: machines by hardware address, IP address and agent, and
//! the workflow to run on each machine. [`crate::object_watcher`] updates the index from watches.
//! The boot services read the index for every packet.

mod claims;
mod contested;
mod endpoints;
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
pub use neighbors::interface as neighbor_interface;
pub use requester::Requester;
pub use works::WorkflowProgress;

/// Index of machines and workflows; clones share the data.
#[derive(Clone, Default)]
pub struct Index {
    /// Workflows, ended or not, by machine and agent.
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
    /// IPv6 prefixes of the box's interfaces, by network.
    prefixes: HashMap<String, u64>,
    /// Names of the networks that allow enrollment.
    enrolling: HashSet<String>,
    /// IP addresses of the BMCs, by bmc Machine.
    controllers: HashMap<ObjectKey, IpAddr>,
    /// Power states with their reasons, by bmc Machine.
    powers: HashMap<ObjectKey, (Power, Arc<str>)>,
    /// Virtual addresses of control planes, by ControlPlaneEndpoint.
    endpoints: HashMap<ObjectKey, Ipv4Addr>,
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

    /// Adds or updates a Hardware. Returns new conflicts: MAC addresses, IP addresses and agent IDs
    /// that another Hardware contains too.
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

    /// Removes a Hardware, with its addresses and agent ID.
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

    /// Returns the machine with the MAC address `mac`; `None` if unknown.
    pub fn by_mac(&self, mac: MacAddr) -> Option<Arc<Hardware>> {
        let tables = self.read();
        tables.hardware.get(tables.by_mac.owner(&mac)?).cloned()
    }

    /// Returns the machine with an IP address: by its Hardware, else by a lease, else by ARP.
    pub fn by_address(&self, address: IpAddr) -> Option<Arc<Hardware>> {
        let tables = self.read();
        let address = tables.twin(address).unwrap_or(address);
        if let Some(key) = tables.by_address.owner(&address) {
            return tables.hardware.get(key).cloned();
        }
        drop(tables);
        self.by_mac(self.holder(address)?)
    }

    /// Returns true if a Hardware or a ControlPlaneEndpoint contains the address.
    pub fn is_reserved(&self, address: IpAddr) -> bool {
        let tables = self.read();
        let is_endpoint = tables.endpoints.values().any(|it| IpAddr::V4(*it) == address);
        is_endpoint || tables.by_address.owner(&address).is_some()
    }

    /// Returns the MAC address of the machine that uses an IPv4 address: by a lease, else by ARP.
    /// ARP also finds a machine whose address another DHCP server assigned.
    pub fn holder(&self, address: IpAddr) -> Option<MacAddr> {
        let IpAddr::V4(leased) = address else { return None };
        let leased = self.read().leases.get(&leased).copied();
        leased.or_else(|| self.neighbor(address))
    }

    /// Returns the MAC address of the sender of a request: by ARP, else by a lease.
    pub fn sender(&self, address: IpAddr) -> Option<MacAddr> {
        let leased = |address| self.read().leases.get(&address).copied();
        self.neighbor(address).or_else(|| match address {
            IpAddr::V4(address) => leased(address),
            IpAddr::V6(_) => None,
        })
    }

    /// Returns the MAC address in the kernel's ARP entry of an IPv4 address; `None` outside of the
    /// box's own networks.
    pub fn neighbor(&self, address: IpAddr) -> Option<MacAddr> {
        let IpAddr::V4(address) = address else { return None };
        neighbors::hardware_address(address)
    }

    /// Returns the address from a pool that the interface `mac` has leased.
    pub fn lease_of(&self, mac: MacAddr) -> Option<IpAddr> {
        self.read().leaseholders.get(&mac).map(|address| IpAddr::V4(*address))
    }

    /// Adds a lease from a pool.
    pub fn put_lease(&self, address: Ipv4Addr, mac: MacAddr) {
        let mut tables = self.write();
        tables.leases.insert(address, mac);
        tables.leaseholders.insert(mac, address);
    }

    /// Removes the lease of an address.
    pub fn remove_lease(&self, address: Ipv4Addr) {
        let mut tables = self.write();
        let Some(mac) = tables.leases.remove(&address) else { return };
        // The machine may have a newer lease of another address.
        if tables.leaseholders.get(&mac) == Some(&address) {
            tables.leaseholders.remove(&mac);
        }
    }

    /// Sets the IPv6 prefix of a network from the box's own address `own` on the network.
    pub fn set_prefix(&self, network: &str, own: Ipv6Addr) {
        self.write().prefixes.insert(network.to_owned(), prefix(own));
    }

    /// Returns the IPv6 address for a machine whose Hardware has only an IPv4 address: the prefix
    /// of the box, followed by the IPv4 address (`fd77::10.77.0.11`).
    pub fn ipv6_twin(&self, address: Ipv4Addr) -> Option<Ipv6Addr> {
        let tables = self.read();
        let prefix = tables.prefixes.values().next()?;
        let host = u128::from(address.to_bits());
        Some(Ipv6Addr::from_bits(u128::from(*prefix) << 64 | host))
    }

    /// Sets if a network allows enrollment.
    pub fn set_enrolls(&self, network: &str, enrolls: bool) {
        let mut tables = self.write();
        if enrolls {
            tables.enrolling.insert(network.to_owned());
        } else {
            tables.enrolling.remove(network);
        }
    }

    /// Returns true if at least one network allows enrollment.
    pub fn enrolls(&self) -> bool {
        !self.read().enrolling.is_empty()
    }

    /// Sets the IP address of a BMC. A host name as `host` removes the entry.
    pub fn put_controller(&self, key: ObjectKey, host: &str) {
        let mut tables = self.write();
        match host.parse() {
            Ok(address) => tables.controllers.insert(key, address),
            Err(_) => tables.controllers.remove(&key),
        };
    }

    /// Removes a BMC and its power state.
    pub fn remove_controller(&self, key: &ObjectKey) {
        let mut tables = self.write();
        tables.controllers.remove(key);
        tables.powers.remove(key);
    }

    /// Returns the IP address of a machine's BMC; `None` if unknown.
    pub fn controller_of(&self, hardware: &Hardware) -> Option<IpAddr> {
        let name = &hardware.spec.bmc_ref.as_ref()?.name;
        let key = ObjectKey::new(&hardware.metadata.namespace, name);
        self.read().controllers.get(&key).copied()
    }

    /// Returns the machine as [`Index::by_instance_id`], for an ID with dashes instead of colons.
    pub fn by_dashed_instance_id(&self, id: &str) -> Option<Arc<Hardware>> {
        self.by_id(|own| own.replace(':', "-") == id)
    }

    /// Returns the machine with the instance ID `id`; `None` if no or several machines have this
    /// ID. For a Hardware without an instance ID, its UID counts.
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

    /// Returns the machine on which the agent `agent_id` runs; `None` if unknown.
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

    /// Returns the machine whose BMC is the bmc Machine `machine`.
    pub fn by_machine(&self, machine: &ObjectKey) -> Option<Arc<Hardware>> {
        let tables = self.read();
        let owns = |hardware: &&Arc<Hardware>| {
            hardware.metadata.namespace == machine.namespace
                && hardware.spec.bmc_ref.as_ref().is_some_and(|bmc| bmc.name == machine.name)
        };
        tables.hardware.values().find(owns).cloned()
    }

    /// Returns the Workflow for which a machine must boot the agent, if any.
    pub fn run_of(&self, hardware: &Hardware) -> Option<Arc<Run>> {
        let agents = match &hardware.spec.agent_id {
            Some(agent) => vec![agent.clone()],
            None => hardware.spec.macs().map(|mac| mac.to_string()).collect(),
        };
        self.runs.to_boot(&hardware.key(), &agents)
    }

    /// Returns true if a Hardware or a Workflow names the agent.
    pub fn knows_agent(&self, agent_id: &str) -> bool {
        self.by_agent(agent_id).is_some() || self.runs.know(agent_id)
    }
}

/// Returns the prefix of an IPv6 address, which is the first 64 bits.
fn prefix(address: Ipv6Addr) -> u64 {
    u64::try_from(address.to_bits() >> 64).unwrap_or_default()
}

impl Tables {
    /// Returns the IPv4 address inside an address of [`Index::ipv6_twin`]; otherwise `None`.
    fn twin(&self, address: IpAddr) -> Option<IpAddr> {
        let IpAddr::V6(address) = address else { return None };
        let host = u64::try_from(address.to_bits() & u128::from(u64::MAX)).ok()?;
        let ours = self.prefixes.values().any(|own| *own == prefix(address));
        let host = u32::try_from(host).ok().filter(|_| ours)?;
        Some(Ipv4Addr::from_bits(host).into())
    }

    /// Adds the addresses and the agent ID of a machine to the tables. Returns the new conflicts.
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

    /// Removes the addresses and the agent ID of a machine from the tables.
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

/// Returns true if enrollment created the Hardware, not a person.
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
