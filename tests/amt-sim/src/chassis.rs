//! Machine that the engine controls.

use std::fmt;

/// Boot device of the boot that a request begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BootSource {
    /// Permanent boot order of the firmware.
    Default,
    /// Network boot by PXE.
    Network,
    /// First disk of the machine.
    Disk,
}

/// Power request that the engine has accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChassisAction {
    /// Switches the machine on.
    On(BootSource),
    /// Switches the machine off and on.
    Cycle(BootSource),
    /// Resets the machine without a loss of power.
    Reset(BootSource),
    /// Switches the machine off at once.
    Off,
    /// Requests a shutdown by the operating system.
    SoftOff,
}

/// Real or emulated machine behind the engine.
pub trait Chassis: fmt::Debug + Send + Sync {
    /// Returns true while the machine has power.
    fn is_on(&self) -> bool;

    /// Executes a power request.
    ///
    /// # Errors
    /// The machine did not change its power, as a sentence.
    fn control(&self, action: ChassisAction) -> Result<(), String>;
}
