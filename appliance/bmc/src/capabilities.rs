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
    /// Returns the name of the feature, as in the status of a Machine.
    pub fn name(self) -> &'static str {
        match self {
            Self::HttpBoot => "httpBoot",
            Self::VirtualMedia => "virtualMedia",
            Self::Identify => "identify",
            Self::Sensors => "sensors",
            Self::Events => "events",
            Self::Inventory => "inventory",
            Self::Console => "console",
        }
    }
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::HttpBoot => "UEFI HTTP boot",
            Self::VirtualMedia => "virtual media",
            Self::Identify => "an identification LED",
            Self::Sensors => "sensors",
            Self::Events => "an event log",
            Self::Inventory => "an inventory",
            Self::Console => "a serial console",
        })
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
