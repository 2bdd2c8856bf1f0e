//! Trait of all BMC drivers.

use std::fmt;
use std::future::{Future, ready};
use std::pin::Pin;
use std::time::Duration;

use tokio::io::DuplexStream;

use crate::{Capabilities, Error, Feature, HardwareInventory, LogEntry, Sensor};

/// Power state of a machine as its BMC reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Power {
    /// The machine has power.
    On,
    /// The machine has no power.
    Off,
    /// The BMC answered, but does not know the power state.
    Unknown,
}

impl fmt::Display for Power {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::On => "on",
            Self::Off => "off",
            Self::Unknown => "unknown",
        })
    }
}

/// Power change to request. An `Ok` result does not confirm the new state: see [`crate::ensure()`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PowerAction {
    /// Switches the power on.
    On,
    /// Switches the power off at once, without a shutdown.
    Off,
    /// Requests a shutdown by the operating system (ACPI power button).
    Soft,
    /// Switches the power off and on again.
    Cycle,
    /// Resets the machine without losing power and without a shutdown.
    Reset,
}

impl PowerAction {
    fn words(self) -> [&'static str; 2] {
        match self {
            Self::On => ["on", "power on"],
            Self::Off => ["off", "power off"],
            Self::Soft => ["soft", "soft power off"],
            Self::Cycle => ["cycle", "power cycle"],
            Self::Reset => ["reset", "reset"],
        }
    }

    /// Returns the word for the action in the status of a Machine and in Rufio's provider `rpc`.
    pub fn word(self) -> &'static str {
        self.words()[0]
    }
}

impl fmt::Display for PowerAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words()[1])
    }
}

/// Boot device that the firmware uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BootDevice {
    /// Network boot by PXE.
    Pxe,
    /// Default disk of the machine.
    Disk,
    /// Setup program of the firmware.
    Bios,
    /// CD or DVD, real or virtual.
    Cdrom,
    /// Default disk, with the operating system in safe mode.
    Safe,
}

impl fmt::Display for BootDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pxe => "pxe",
            Self::Disk => "disk",
            Self::Bios => "bios",
            Self::Cdrom => "cdrom",
            Self::Safe => "safe",
        })
    }
}

/// Boot device that overrides the boot order of the firmware.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BootOverride {
    /// Device to boot from.
    pub device: BootDevice,
    /// True for every later boot, false for the next boot only.
    pub persistent: bool,
    /// True to boot in UEFI mode, false in legacy BIOS mode.
    pub efi: bool,
}

/// Evidence that confirms a change of power.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confirmation {
    /// The BMC reports the state. An unknown state permits no change.
    Report,
    /// The switch of a port reports the state. An unknown state means that no device draws power,
    /// so the port may be switched on and off. The driver refuses `off` if the state is not clear.
    Switch,
    /// A request of the machine, because no BMC reports the state. `on` is harmless then: the
    /// machine ignores it while it is on.
    Sighting {
        /// Maximum time from `on` to the first request of the machine.
        within: Duration,
    },
}

/// Future that a driver's method returns; boxed, so that the trait is object-safe.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;

/// Driver of one BMC. Every method has its own time limit. A caller may drop the returned future at
/// any time; the next call then opens a new session.
pub trait Driver: Send + Sync {
    /// Returns the name of the protocol for display: `ipmi`, `amt`, `webhook`.
    fn name(&self) -> &'static str;

    /// Returns what the driver can do. A request that it cannot do is an error.
    fn capabilities(&self) -> Capabilities;

    /// Returns the evidence that confirms a change of power.
    fn confirmation(&self) -> Confirmation {
        Confirmation::Report
    }

    /// Returns the reason of the last power state, as a sentence; `None` if the BMC reports no more
    /// than the state.
    fn power_reason(&self) -> Option<String> {
        None
    }

    /// Returns true if a machine without a BMC has sent no request for so long that it may be taken
    /// as off.
    fn is_silent(&self) -> bool {
        false
    }

    /// Reads the power state from the BMC.
    fn power(&self) -> Pending<'_, Power>;

    /// Requests a change of power. `Ok` means that the BMC accepted the request, not the new state.
    fn set_power(&self, action: PowerAction) -> Pending<'_, ()>;

    /// Sets the boot device of the next boot or of every boot.
    fn set_boot_device(&self, boot: BootOverride) -> Pending<'_, ()>;

    /// Reads the active override; `None` if the machine uses its own boot order.
    fn boot_device(&self) -> Pending<'_, Option<BootOverride>>;

    /// Sets the URL from which the firmware boots next by UEFI HTTP boot.
    fn set_http_boot<'a>(&'a self, url: &'a str) -> Pending<'a, ()> {
        let _ = url;
        lacking(self.name(), Feature::HttpBoot)
    }

    /// Inserts the CD image at `url` as virtual media. The machine reads the image from there.
    fn insert_media<'a>(&'a self, url: &'a str) -> Pending<'a, ()> {
        let _ = url;
        lacking(self.name(), Feature::VirtualMedia)
    }

    /// Ejects the virtual media. Without media, the call succeeds.
    fn eject_media(&self) -> Pending<'_, ()> {
        lacking(self.name(), Feature::VirtualMedia)
    }

    /// Switches the identification LED on for this time; zero switches it off.
    fn identify(&self, time: Duration) -> Pending<'_, ()> {
        let _ = time;
        lacking(self.name(), Feature::Identify)
    }

    /// Reads the values and states of all sensors.
    fn sensors(&self) -> Pending<'_, Vec<Sensor>> {
        lacking(self.name(), Feature::Sensors)
    }

    /// Reads the newest entries of the BMC's event log, at most [`LogEntry::LIMIT`], oldest first.
    fn events(&self) -> Pending<'_, Vec<LogEntry>> {
        lacking(self.name(), Feature::Events)
    }

    /// Reads the inventory of the machine, also while the machine is off.
    fn inventory(&self) -> Pending<'_, HardwareInventory> {
        lacking(self.name(), Feature::Inventory)
    }

    /// Opens the serial console. The stream ends when the BMC ends the session; a drop of the
    /// stream ends the session.
    fn console(&self) -> Pending<'_, DuplexStream> {
        lacking(self.name(), Feature::Console)
    }
}

/// Driver that adds to another driver. A method without an own implementation calls the method of
/// the other driver.
pub trait DriverLayer: Send + Sync {
    /// Returns the driver below.
    fn below(&self) -> &dyn Driver;

    /// Capabilities of the machine; by default those of the driver below.
    fn capabilities(&self) -> Capabilities {
        self.below().capabilities()
    }

    /// Reason of the last power state; by default that of the driver below.
    fn power_reason(&self) -> Option<String> {
        self.below().power_reason()
    }

    /// True if the machine may be taken as off; by default as the driver below says.
    fn is_silent(&self) -> bool {
        self.below().is_silent()
    }

    /// Reads the power state; by default by the driver below.
    fn power(&self) -> Pending<'_, Power> {
        self.below().power()
    }

    /// Requests a change of power; by default from the driver below.
    fn set_power(&self, action: PowerAction) -> Pending<'_, ()> {
        self.below().set_power(action)
    }
}

impl<L: DriverLayer> Driver for L {
    fn name(&self) -> &'static str {
        self.below().name()
    }

    fn capabilities(&self) -> Capabilities {
        DriverLayer::capabilities(self)
    }

    fn confirmation(&self) -> Confirmation {
        self.below().confirmation()
    }

    fn power_reason(&self) -> Option<String> {
        DriverLayer::power_reason(self)
    }

    fn is_silent(&self) -> bool {
        DriverLayer::is_silent(self)
    }

    fn power(&self) -> Pending<'_, Power> {
        DriverLayer::power(self)
    }

    fn set_power(&self, action: PowerAction) -> Pending<'_, ()> {
        DriverLayer::set_power(self, action)
    }

    fn set_boot_device(&self, boot: BootOverride) -> Pending<'_, ()> {
        self.below().set_boot_device(boot)
    }

    fn boot_device(&self) -> Pending<'_, Option<BootOverride>> {
        self.below().boot_device()
    }

    fn set_http_boot<'a>(&'a self, url: &'a str) -> Pending<'a, ()> {
        self.below().set_http_boot(url)
    }

    fn insert_media<'a>(&'a self, url: &'a str) -> Pending<'a, ()> {
        self.below().insert_media(url)
    }

    fn eject_media(&self) -> Pending<'_, ()> {
        self.below().eject_media()
    }

    fn identify(&self, time: Duration) -> Pending<'_, ()> {
        self.below().identify(time)
    }

    fn sensors(&self) -> Pending<'_, Vec<Sensor>> {
        self.below().sensors()
    }

    fn events(&self) -> Pending<'_, Vec<LogEntry>> {
        self.below().events()
    }

    fn inventory(&self) -> Pending<'_, HardwareInventory> {
        self.below().inventory()
    }

    fn console(&self) -> Pending<'_, DuplexStream> {
        self.below().console()
    }
}

fn lacking<'a, T: Send + 'a>(driver: &'static str, feature: Feature) -> Pending<'a, T> {
    Box::pin(ready(Err(Error::FeatureMissing { driver, feature })))
}
