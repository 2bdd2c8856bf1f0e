//! Chassis commands (IPMI 2.0 §28): power and the identification LED.

use std::time::Duration;

use super::{CHASSIS, Command, Malformed, Reader};

/// Change of power that a BMC can make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PowerRequest {
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

/// Get Chassis Status (IPMI 2.0 §28.2): true if the machine has power.
#[derive(Debug, Clone, Copy)]
pub struct ChassisStatus;

impl Command for ChassisStatus {
    const NAME: &'static str = "Get Chassis Status";
    const NET_FN: u8 = CHASSIS;
    const CODE: u8 = 0x01;
    type Reply = bool;

    fn reply(&self, data: &[u8]) -> Result<bool, Malformed> {
        let [state, _, _] = Reader::new(data).array("chassis status")?;
        Ok(state & 1 == 1)
    }
}

/// Chassis Control (IPMI 2.0 §28.3).
#[derive(Debug, Clone, Copy)]
pub struct ChassisControl(pub PowerRequest);

impl Command for ChassisControl {
    const NAME: &'static str = "Chassis Control";
    const NET_FN: u8 = CHASSIS;
    const CODE: u8 = 0x02;
    const SLOW: bool = true;
    type Reply = ();

    fn data(&self) -> Vec<u8> {
        vec![match self.0 {
            PowerRequest::Off => 0,
            PowerRequest::On => 1,
            PowerRequest::Cycle => 2,
            PowerRequest::Reset => 3,
            PowerRequest::Soft => 5,
        }]
    }

    fn may_repeat(&self) -> bool {
        matches!(self.0, PowerRequest::On | PowerRequest::Off)
    }

    fn reply(&self, _: &[u8]) -> Result<(), Malformed> {
        Ok(())
    }
}

/// Chassis Identify (IPMI 2.0 §28.5): the LED is on for this time, at most 255 s; zero switches it
/// off.
#[derive(Debug, Clone, Copy)]
pub struct ChassisIdentify(pub Duration);

impl Command for ChassisIdentify {
    const NAME: &'static str = "Chassis Identify";
    const NET_FN: u8 = CHASSIS;
    const CODE: u8 = 0x04;
    type Reply = ();

    fn data(&self) -> Vec<u8> {
        // A fraction of a second must not become zero, which switches the LED off.
        let seconds = self.0.as_secs() + u64::from(self.0.subsec_nanos() > 0);
        vec![u8::try_from(seconds).unwrap_or(u8::MAX)]
    }

    fn reply(&self, _: &[u8]) -> Result<(), Malformed> {
        Ok(())
    }
}
