//! Machines and an observer in memory, for tests.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use stdx::MacAddr;

use crate::{Instance, Instances, Observer, PhoneHome, Unmatched};

/// Machines, with the addresses that identify them.
#[derive(Default)]
pub struct Machines {
    instances: Vec<Instance>,
    addresses: HashMap<IpAddr, Result<usize, Unmatched>>,
}

impl Machines {
    /// Returns machines that are identified by the addresses of their interfaces.
    pub fn of(instances: impl IntoIterator<Item = Instance>) -> Self {
        let mut machines = Self::default();
        for instance in instances {
            let number = machines.instances.len();
            for address in instance.interfaces.iter().filter_map(|nic| nic.address) {
                machines.addresses.entry(address.addr()).or_insert(Ok(number));
            }
            machines.instances.push(instance);
        }
        machines
    }

    /// Adds a machine that is identified by an address.
    #[must_use]
    pub fn with(mut self, address: impl Into<IpAddr>, instance: Instance) -> Self {
        self.addresses.insert(address.into(), Ok(self.instances.len()));
        self.instances.push(instance);
        self
    }

    /// Adds an address that matches no machine, with the reason.
    #[must_use]
    pub fn without(mut self, address: impl Into<IpAddr>, reason: Unmatched) -> Self {
        self.addresses.insert(address.into(), Err(reason));
        self
    }
}

impl Instances for Machines {
    fn by_address(&self, address: IpAddr) -> Result<Instance, Unmatched> {
        let known = self.addresses.get(&address).cloned();
        known.unwrap_or(Err(Unmatched::UnknownAddress)).map(|it| self.instances[it].clone())
    }

    fn by_instance_id(&self, id: &str) -> Option<Instance> {
        self.instances.iter().find(|instance| instance.id == id).cloned()
    }
}

/// Observer that stores all events.
#[derive(Default)]
pub struct Events {
    requests: Mutex<Vec<(String, u16)>>,
    phoned_home: Mutex<Vec<PhoneHome>>,
    withheld: Mutex<Vec<String>>,
    refused: Mutex<Vec<(String, MacAddr)>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Events {
    /// Returns the paths of the answered requests, each with its status.
    pub fn requests(&self) -> Vec<(String, u16)> {
        locked(&self.requests).clone()
    }

    /// Returns the recorded phone-homes.
    pub fn phoned_home(&self) -> Vec<PhoneHome> {
        locked(&self.phoned_home).clone()
    }

    /// Returns the machines whose user data was requested outside the window.
    pub fn withheld(&self) -> Vec<String> {
        locked(&self.withheld).clone()
    }

    /// Returns the machines whose address another NIC used, with the MAC address of the NIC.
    pub fn refused(&self) -> Vec<(String, MacAddr)> {
        locked(&self.refused).clone()
    }
}

impl Observer for Events {
    fn answered(&self, _: IpAddr, path: &str, status: u16) {
        locked(&self.requests).push((path.to_owned(), status));
    }

    fn phoned_home(&self, event: PhoneHome) {
        locked(&self.phoned_home).push(event);
    }

    fn withheld(&self, _: IpAddr, hardware: &str) {
        locked(&self.withheld).push(hardware.to_owned());
    }

    fn refused(&self, _: IpAddr, hardware: &str, mac: MacAddr) {
        locked(&self.refused).push((hardware.to_owned(), mac));
    }
}
