//! Conditions and other fields in the status of a TinkerbellMachine.

use std::net::IpAddr;

use api::infrastructure::{MachineAddress, TinkerbellMachineStatus};
use api::tinkerbell::Hardware;
use jiff::Timestamp;

use super::observe::Observed;
use crate::conditions::{DecisionTime, Finding, find};
pub use crate::conditions::{PAUSED, READY};

/// Condition that the machine owns a Hardware.
pub const HARDWARE: &str = "HardwareClaimed";
/// Condition that the bootstrap data exist.
pub const BOOTSTRAP: &str = "BootstrapDataReady";
/// Condition that the operating system is installed.
pub const INSTALLED: &str = "Installed";

/// Status with the changes of one decision.
#[derive(Clone)]
pub struct StatusUpdate {
    /// Status with all changes so far.
    pub status: TinkerbellMachineStatus,
    generation: i64,
    now: Timestamp,
}

impl StatusUpdate {
    /// Creates an update without changes.
    pub fn new(observed: &Observed, now: Timestamp) -> Self {
        let generation = observed.machine.metadata.generation;
        Self { status: observed.machine.status.clone(), generation, now }
    }

    /// Returns the time of the decision.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// Sets a condition to `True` or `False`.
    pub fn put(&mut self, kind: &'static str, is_true: bool, reason: &'static str, message: &str) {
        let finding = Finding { kind, is_true, reason, message: message.to_owned() };
        let moment = DecisionTime { generation: self.generation, now: self.now };
        finding.put(&mut self.status.conditions, moment);
    }

    /// Returns true if the condition `kind` is `True`.
    pub fn is_true(&self, kind: &str) -> bool {
        find(&self.status.conditions, kind).is_some_and(|it| it.status == "True")
    }

    /// Returns the reason of the condition `kind`; empty without the condition.
    pub fn reason(&self, kind: &str) -> &str {
        find(&self.status.conditions, kind).map_or("", |it| &it.reason)
    }
}

/// Returns all addresses and names of the machine in the Hardware, without repetition.
pub fn addresses(host: &Hardware) -> Vec<MachineAddress> {
    let mut all: Vec<MachineAddress> = Vec::new();
    let mut add = |kind: &str, address: &str| {
        let address = MachineAddress { kind: kind.to_owned(), address: address.to_owned() };
        if !address.address.is_empty() && !all.contains(&address) {
            all.push(address);
        }
    };
    let interfaces = || host.spec.interfaces.iter().filter_map(|it| it.dhcp.as_ref());
    for dhcp in interfaces() {
        let address = dhcp.ip.as_ref().map_or("", |ip| &ip.address);
        if address.parse::<IpAddr>().is_ok() {
            add("InternalIP", address);
        }
    }
    let instance = host.spec.metadata.as_ref().and_then(|it| it.instance.as_ref());
    let hostname = instance.map(|it| it.hostname.as_str()).filter(|name| !name.is_empty());
    let hostname = hostname.or_else(|| interfaces().map(|it| it.hostname.as_str()).next());
    if let Some(hostname) = hostname {
        add("Hostname", hostname);
        add("InternalDNS", hostname);
    }
    all
}
