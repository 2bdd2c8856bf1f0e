//! The record of a NUC's power events, and their types.

use std::fs::File;
use std::io::Write;
use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::hold;

/// Events kept per NUC; a run with more events is broken, and its oldest events do not matter.
const MAX_EVENTS: usize = 10_000;

/// One-time boot device of the next boot (IPMI v2.0 table 28-14, boot device selector).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BootDevice {
    /// No override: the permanent boot order.
    Normal,
    /// Network before disk, for one boot.
    Network,
    /// Disk before network, for one boot.
    Disk,
}

/// Cause of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The box, through the BMC.
    Bmc,
    /// A magic packet on the network.
    Network,
    /// The test, as a person at the power button or the plug.
    Harness,
    /// The software running on the NUC.
    Guest,
}

/// Kind of a power event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Power was switched on.
    On,
    /// Hard power off. (A power cycle is `Off` and then `On`, as `ipmi_sim` performs it.)
    Off,
    /// Hard reset. From [`Origin::Guest`]: the guest rebooted.
    Reset,
    /// Press of the ACPI power button. From [`Origin::Guest`]: the guest switched itself off.
    SoftOff,
    /// A one-time boot device was set.
    Boot(BootDevice),
    /// The machine lost its mains power.
    PowerCut,
    /// QEMU ended by itself, which is always an error.
    Died,
}

/// One entry of the power log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PowerEvent {
    /// Time of the event.
    pub at: SystemTime,
    /// Cause of the event.
    pub origin: Origin,
    /// Kind of the event.
    pub action: Action,
    /// True when the event changed the state; false, for instance, for `On` of a running machine.
    pub changed: bool,
}

/// The events of one NUC, also appended to the rack's `power.log`.
#[derive(Debug)]
pub struct PowerLog {
    number: u8,
    events: Mutex<Vec<PowerEvent>>,
    reports: Mutex<Vec<(SystemTime, bool)>>,
    file: File,
}

impl PowerLog {
    pub fn new(number: u8, file: File) -> Self {
        Self { number, events: Mutex::default(), reports: Mutex::default(), file }
    }

    pub fn record(&self, origin: Origin, action: Action, changed: bool) {
        let at = SystemTime::now();
        let seconds = at.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let note = if changed { "" } else { " (no change)" };
        let line = format!(
            "{}.{:03} nuc{} {origin:?} {action:?}{note}\n",
            seconds / 1000,
            seconds % 1000,
            self.number
        );
        // The log file is for people; tests read the list below.
        let _ = (&self.file).write_all(line.as_bytes());
        let mut events = hold(&self.events);
        if events.len() >= MAX_EVENTS {
            events.remove(0);
        }
        events.push(PowerEvent { at, origin, action, changed });
    }

    pub fn events(&self) -> Vec<PowerEvent> {
        hold(&self.events).clone()
    }

    /// Records that the BMC reports this state, if its last report was another one. The box reads
    /// the state every few seconds.
    pub fn report(&self, is_on: bool) {
        let mut reports = hold(&self.reports);
        let is_new = reports.last().is_none_or(|(_, last)| *last != is_on);
        if is_new && reports.len() < MAX_EVENTS {
            reports.push((SystemTime::now(), is_on));
        }
    }

    pub fn reports(&self) -> Vec<(SystemTime, bool)> {
        hold(&self.reports).clone()
    }
}
