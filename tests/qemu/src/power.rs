//! The record of everything that touched a NUC's power, and the words for it.

use std::fs::File;
use std::io::Write;
use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::hold;

/// Events kept per NUC; a run that makes more is broken and its oldest do not matter.
const MAX_EVENTS: usize = 10_000;

/// What the next boot should start from, once (IPMI v2.0 table 28-14, boot device selector).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BootDevice {
    /// No override: the machine's own order.
    Normal,
    /// Network first.
    Network,
    /// Disk first.
    Disk,
}

/// Who acted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The box, through the BMC.
    Bmc,
    /// The test: a finger on the button, a hand on the plug.
    Harness,
    /// The software running on the NUC.
    Guest,
}

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Power on.
    On,
    /// Hard power off. (A power cycle is `Off` and then `On`, as `ipmi_sim` performs it.)
    Off,
    /// Hard reset. From [`Origin::Guest`]: the guest rebooted.
    Reset,
    /// The ACPI power button. From [`Origin::Guest`]: the guest switched itself off.
    SoftOff,
    /// A one-time boot device was set.
    Boot(BootDevice),
    /// The machine lost its mains.
    PowerCut,
    /// QEMU ended by itself, which it never should.
    Died,
}

/// One line of the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PowerEvent {
    /// When.
    pub at: SystemTime,
    /// Who.
    pub origin: Origin,
    /// What.
    pub action: Action,
    /// Whether it changed anything: false for `On` of a running machine.
    pub changed: bool,
}

/// The events of one NUC, also appended to the rack's `power.log`.
#[derive(Debug)]
pub struct PowerLog {
    number: u8,
    events: Mutex<Vec<PowerEvent>>,
    file: File,
}

impl PowerLog {
    pub fn new(number: u8, file: File) -> Self {
        Self { number, events: Mutex::new(Vec::new()), file }
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
        // The log on disk is for people; the record that tests read is below.
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
}
