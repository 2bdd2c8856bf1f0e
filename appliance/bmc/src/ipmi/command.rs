//! IPMI commands of the driver, with the encoding of requests and the decoding of replies.

pub mod payload;
pub mod sdr;
pub mod sel;
pub mod sensor;

use std::time::Duration;

use super::Malformed;
use super::message::Command;
use super::wire::Reader;
use crate::{BootDevice, BootOverride, Power, PowerAction};

const CHASSIS: u8 = 0x00;
const SENSOR: u8 = 0x04;
const APP: u8 = 0x06;
const STORAGE: u8 = 0x0A;

/// Privilege level "operator" (IPMI 2.0 table 13-17): the lowest level with power control.
pub const OPERATOR: u8 = 0x03;

/// Get Chassis Status (IPMI 2.0 §28.2).
#[derive(Debug, Clone, Copy)]
pub struct ChassisStatus;

impl Command for ChassisStatus {
    const NAME: &'static str = "Get Chassis Status";
    const NET_FN: u8 = CHASSIS;
    const CODE: u8 = 0x01;
    type Reply = Power;

    fn reply(&self, data: &[u8]) -> Result<Power, Malformed> {
        let [state, _, _] = Reader::new(data).array("chassis status")?;
        Ok(if state & 1 == 1 { Power::On } else { Power::Off })
    }
}

/// Chassis Control (IPMI 2.0 §28.3).
#[derive(Debug, Clone, Copy)]
pub struct ChassisControl(pub PowerAction);

impl Command for ChassisControl {
    const NAME: &'static str = "Chassis Control";
    const NET_FN: u8 = CHASSIS;
    const CODE: u8 = 0x02;
    const SLOW: bool = true;
    type Reply = ();

    fn data(&self) -> Vec<u8> {
        vec![match self.0 {
            PowerAction::Off => 0,
            PowerAction::On => 1,
            PowerAction::Cycle => 2,
            PowerAction::Reset => 3,
            PowerAction::Soft => 5,
        }]
    }

    fn may_repeat(&self) -> bool {
        matches!(self.0, PowerAction::On | PowerAction::Off)
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

/// Boot flags as stored by the BMC (IPMI 2.0 table 28-14, parameter 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BootFlags {
    /// True while the flags apply. The BMC clears the flags after use or (by default) 60 seconds.
    pub valid: bool,
    /// True for every later boot, false for the next boot only.
    pub persistent: bool,
    /// True for UEFI mode, false for legacy BIOS mode.
    pub efi: bool,
    /// Boot device; `None` without an override, or for a device that [`BootDevice`] lacks.
    pub device: Option<BootDevice>,
}

impl BootFlags {
    /// Returns the override; `None` if the flags are not valid or name no known device.
    pub fn in_force(self) -> Option<BootOverride> {
        let Self { valid, persistent, efi, device } = self;
        device.filter(|_| valid).map(|device| BootOverride { device, persistent, efi })
    }

    fn from_bytes([flags, selector]: [u8; 2]) -> Self {
        let device = match selector >> 2 & 0x0F {
            0b0001 => Some(BootDevice::Pxe),
            // For the firmware, remotely connected media are an ordinary disk or CD.
            0b0010 | 0b1011 => Some(BootDevice::Disk),
            0b0011 => Some(BootDevice::Safe),
            0b0101 | 0b1000 => Some(BootDevice::Cdrom),
            0b0110 => Some(BootDevice::Bios),
            _ => None,
        };
        Self {
            valid: flags & 0x80 != 0,
            persistent: flags & 0x40 != 0,
            efi: flags & 0x20 != 0,
            device,
        }
    }
}

/// Set System Boot Options (IPMI 2.0 §28.12) with one parameter (table 28-14).
#[derive(Debug, Clone, Copy)]
pub enum SetBootOption {
    /// Parameter 0: a change begins; other clients must wait until [`SetBootOption::Complete`].
    InProgress,
    /// Parameter 0: the change is complete.
    Complete,
    /// Parameter 3: keep the flags even if no Chassis Control follows within 60 seconds.
    KeepFlags,
    /// Parameter 4: sets the flag that the BIOS has not yet handled the boot information.
    Unacknowledged,
    /// Parameter 5: the boot flags.
    Flags(BootOverride),
}

impl Command for SetBootOption {
    const NAME: &'static str = "Set System Boot Options";
    const NET_FN: u8 = CHASSIS;
    const CODE: u8 = 0x08;
    type Reply = ();

    fn data(&self) -> Vec<u8> {
        match self {
            Self::InProgress => vec![0, 1],
            Self::Complete => vec![0, 0],
            Self::KeepFlags => vec![3, 0b0_1000],
            // Write mask, then data: the bit means that BIOS/POST must handle the information.
            Self::Unacknowledged => vec![4, 1, 1],
            Self::Flags(boot) => {
                let bit = |set: bool, bit: u8| if set { bit } else { 0 };
                let device = match boot.device {
                    BootDevice::Pxe => 0b0001,
                    BootDevice::Disk => 0b0010,
                    BootDevice::Safe => 0b0011,
                    BootDevice::Cdrom => 0b0101,
                    BootDevice::Bios => 0b0110,
                };
                let flags = 0x80 | bit(boot.persistent, 0x40) | bit(boot.efi, 0x20);
                vec![5, flags, device << 2, 0, 0, 0]
            }
        }
    }

    fn reply(&self, _: &[u8]) -> Result<(), Malformed> {
        Ok(())
    }
}

/// Get System Boot Options (IPMI 2.0 §28.13), parameter 5.
#[derive(Debug, Clone, Copy)]
pub struct GetBootFlags;

impl Command for GetBootFlags {
    const NAME: &'static str = "Get System Boot Options";
    const NET_FN: u8 = CHASSIS;
    const CODE: u8 = 0x09;
    type Reply = BootFlags;

    fn data(&self) -> Vec<u8> {
        vec![5, 0, 0]
    }

    fn reply(&self, data: &[u8]) -> Result<BootFlags, Malformed> {
        let mut reader = Reader::new(data);
        let [_, parameter] = reader.array("boot option header")?;
        if parameter & 0x7F != 5 {
            return Err(Malformed::Field("boot option number"));
        }
        let mut flags = BootFlags::from_bytes(reader.array("boot flags")?);
        // The parameter as a whole may be marked invalid or locked.
        flags.valid &= parameter & 0x80 == 0;
        Ok(flags)
    }
}

/// Identification of a BMC (IPMI 2.0 §20.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceId {
    /// IANA enterprise number of the manufacturer.
    pub manufacturer: u32,
    /// Product number of the manufacturer.
    pub product: u16,
    /// Firmware revision, major and minor.
    pub firmware: (u8, u8),
    /// Supported IPMI version, major and minor.
    pub ipmi: (u8, u8),
}

/// Get Device ID (IPMI 2.0 §20.1).
#[derive(Debug, Clone, Copy)]
pub struct GetDeviceId;

impl Command for GetDeviceId {
    const NAME: &'static str = "Get Device ID";
    const NET_FN: u8 = APP;
    const CODE: u8 = 0x01;
    type Reply = DeviceId;

    fn reply(&self, data: &[u8]) -> Result<DeviceId, Malformed> {
        let mut reader = Reader::new(data);
        let [_, _, major, minor, version, _] = reader.array("device ID")?;
        let [low, middle, high] = reader.array("manufacturer ID")?;
        let product = reader.u16("product ID")?;
        Ok(DeviceId {
            manufacturer: u32::from_le_bytes([low, middle, high & 0x0F, 0]),
            product,
            // The minor revision is binary coded decimal.
            firmware: (major & 0x7F, (minor >> 4) * 10 + (minor & 0x0F)),
            ipmi: (version & 0x0F, version >> 4),
        })
    }
}

/// Set Session Privilege Level (IPMI 2.0 §22.18). A session begins with the privilege "user".
#[derive(Debug, Clone, Copy)]
pub struct SetPrivilege(pub u8);

impl Command for SetPrivilege {
    const NAME: &'static str = "Set Session Privilege Level";
    const NET_FN: u8 = APP;
    const CODE: u8 = 0x3B;
    type Reply = ();

    fn data(&self) -> Vec<u8> {
        vec![self.0]
    }

    fn reply(&self, data: &[u8]) -> Result<(), Malformed> {
        match Reader::new(data).byte("privilege level")? & 0x0F {
            level if level >= self.0 => Ok(()),
            _ => Err(Malformed::Field("privilege level")),
        }
    }
}

/// Close Session (IPMI 2.0 §22.19).
#[derive(Debug, Clone, Copy)]
pub struct CloseSession {
    /// Session ID that the BMC assigned.
    pub session_id: u32,
}

impl Command for CloseSession {
    const NAME: &'static str = "Close Session";
    const NET_FN: u8 = APP;
    const CODE: u8 = 0x3C;
    type Reply = ();

    fn data(&self) -> Vec<u8> {
        self.session_id.to_le_bytes().to_vec()
    }

    fn reply(&self, _: &[u8]) -> Result<(), Malformed> {
        Ok(())
    }
}

/// Get Channel Cipher Suites (IPMI 2.0 §22.15.1): returns up to 16 bytes of the list.
#[derive(Debug, Clone, Copy)]
pub struct GetCipherSuites {
    /// Index of the 16-byte slice, below [`GetCipherSuites::SLICES`].
    pub slice: u8,
}

impl GetCipherSuites {
    /// Maximum number of slices of a list.
    pub const SLICES: u8 = 0x40;
    /// Length of every slice except the last, in bytes.
    pub const SLICE_LEN: usize = 16;
}

impl Command for GetCipherSuites {
    const NAME: &'static str = "Get Channel Cipher Suites";
    const NET_FN: u8 = APP;
    const CODE: u8 = 0x54;
    type Reply = Vec<u8>;

    fn data(&self) -> Vec<u8> {
        // The channel this arrives on, IPMI payloads, listed by suite.
        vec![0x0E, 0x00, 0x80 | (self.slice & 0x3F)]
    }

    fn reply(&self, data: &[u8]) -> Result<Vec<u8>, Malformed> {
        let mut reader = Reader::new(data);
        reader.byte("channel number")?;
        Ok(reader.rest().iter().take(Self::SLICE_LEN).copied().collect())
    }
}

/// Returns the suite numbers in a complete list of cipher suite records (IPMI 2.0 table 22-19). An
/// invalid record ends the list.
pub fn suite_numbers(mut records: &[u8]) -> Vec<u8> {
    let mut numbers = Vec::new();
    while let Some((&start, rest)) = records.split_first() {
        let skipped = match start {
            0xC0 => 0,
            // A suite of the maker's own: its number, and the maker's.
            0xC1 => 3,
            _ => break,
        };
        let Some((&number, rest)) = rest.split_first() else { break };
        if start == 0xC0 {
            numbers.push(number);
        }
        let rest = rest.get(skipped..).unwrap_or_default();
        let algorithms = rest.iter().take_while(|tag| **tag & 0xC0 != 0xC0).count();
        records = &rest[algorithms..];
    }
    numbers
}

#[cfg(test)]
mod tests;
