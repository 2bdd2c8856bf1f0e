//! Capabilities of a driver: power actions, boot devices and further features.

use std::fmt;

use crate::PowerAction;

/// Boot devices that a driver can set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BootControl {
    /// None: the machine boots by the order of its firmware.
    None,
    /// The device of the next boot.
    Once,
    /// The device of the next boot, or of every boot.
    Always,
}

/// Request that only some drivers have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Feature {
    /// UEFI HTTP boot from a URL.
    HttpBoot,
    /// CD image that the BMC shows to the machine.
    VirtualMedia,
    /// LED that identifies the machine in its rack.
    Identify,
    /// Temperatures, fans, voltages and power.
    Sensors,
    /// Event log of the BMC.
    Events,
    /// Inventory of the machine without its operating system.
    Inventory,
    /// Serial console as a stream of bytes, over the network.
    Console,
}

impl Feature {
    fn words(self) -> [&'static str; 2] {
        match self {
            Self::HttpBoot => ["httpBoot", "UEFI HTTP boot"],
            Self::VirtualMedia => ["virtualMedia", "virtual media"],
            Self::Identify => ["identify", "an identification LED"],
            Self::Sensors => ["sensors", "sensors"],
            Self::Events => ["events", "an event log"],
            Self::Inventory => ["inventory", "an inventory"],
            Self::Console => ["console", "a serial console"],
        }
    }

    /// Returns the name of the feature, as in the status of a Machine.
    pub fn name(self) -> &'static str {
        self.words()[0]
    }
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words()[1])
    }
}

/// Capabilities of a driver, as the status of a Machine lists them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capabilities {
    /// Power actions that the driver can request.
    pub power: &'static [PowerAction],
    /// Boot devices that the driver can set.
    pub boot: BootControl,
    /// Further requests of the driver.
    pub features: Vec<Feature>,
    /// Requests that the protocol has and this machine does not permit, with the reason as a
    /// clause.
    pub missing: Vec<(Feature, &'static str)>,
    /// Weakness of the protection of the connection, as a sentence; `None` for the protection that
    /// the protocol has today.
    pub weakness: Option<&'static str>,
}

impl Capabilities {
    /// Power actions of a management controller.
    pub const ALL_POWER: &'static [PowerAction] = &[
        PowerAction::On,
        PowerAction::Off,
        PowerAction::Soft,
        PowerAction::Cycle,
        PowerAction::Reset,
    ];

    /// Returns the names of the capabilities, as in the status of a Machine.
    pub fn names(&self) -> Vec<&'static str> {
        let power = self.power.iter().map(|action| action.word());
        let boot: &[&str] = match self.boot {
            BootControl::None => &[],
            BootControl::Once => &["bootOnce"],
            BootControl::Always => &["bootOnce", "bootAlways"],
        };
        let features = self.features.iter().map(|feature| feature.name());
        power.chain(boot.iter().copied()).chain(features).collect()
    }
}
