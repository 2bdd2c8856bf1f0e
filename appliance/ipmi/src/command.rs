//! IPMI commands of the driver, with the encoding of requests and the decoding of replies.

pub mod boot;
pub mod chassis;
pub mod payload;
pub mod sdr;
pub mod sel;
pub mod sensor;
pub mod session;

use crate::Malformed;
use crate::message::Command;
use crate::wire::Reader;

const CHASSIS: u8 = 0x00;
const SENSOR: u8 = 0x04;
const APP: u8 = 0x06;
const STORAGE: u8 = 0x0A;

/// Privilege level "operator" (IPMI 2.0 table 13-17): the lowest level with power control.
pub const OPERATOR: u8 = 0x03;

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

#[cfg(test)]
mod tests;
