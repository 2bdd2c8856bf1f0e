//! Activation of payloads (IPMI 2.0 §24): here only serial-over-LAN, instance 1.

use super::{APP, Command, Malformed, Reader};

/// Number of the payload type serial-over-LAN (IPMI 2.0 table 13-16).
const SOL: u8 = 0x01;
/// Number of the instance. A machine has one serial port for serial-over-LAN.
const INSTANCE: u8 = 1;
/// Auxiliary request data, byte 1 (IPMI 2.0 table 24-2): the payload is encrypted and signed.
const PROTECTED: u8 = 0xC0;

/// Activate Payload (IPMI 2.0 §24.1) for serial-over-LAN, encrypted and signed.
#[derive(Debug, Clone, Copy)]
pub struct ActivateSol;

/// Sizes that the BMC accepts (IPMI 2.0 table 24-2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SolLimits {
    /// Maximum length of a payload to the BMC, with its header of 4 bytes.
    pub to_bmc: u16,
    /// UDP port of the BMC for the payload.
    pub port: u16,
}

impl ActivateSol {
    /// Completion code: the payload is active in another session.
    pub const ALREADY_ACTIVE: u8 = 0x80;
    /// Completion code: the payload type is disabled.
    pub const DISABLED: u8 = 0x81;
}

impl Command for ActivateSol {
    const NAME: &'static str = "Activate Payload";
    const NET_FN: u8 = APP;
    const CODE: u8 = 0x48;
    type Reply = SolLimits;

    fn data(&self) -> Vec<u8> {
        vec![SOL, INSTANCE, PROTECTED, 0, 0, 0]
    }

    /// Returns false: the BMC refuses the second activation, also in the same session.
    fn may_repeat(&self) -> bool {
        false
    }

    fn reply(&self, data: &[u8]) -> Result<SolLimits, Malformed> {
        let mut reader = Reader::new(data);
        reader.take(4, "auxiliary data")?;
        let to_bmc = reader.u16("inbound payload size")?;
        reader.u16("outbound payload size")?;
        Ok(SolLimits { to_bmc, port: reader.u16("payload port")? })
    }
}

/// Get Payload Activation Status (IPMI 2.0 §24.4): true if serial-over-LAN is active.
#[derive(Debug, Clone, Copy)]
pub struct GetSolActivation;

impl Command for GetSolActivation {
    const NAME: &'static str = "Get Payload Activation Status";
    const NET_FN: u8 = APP;
    const CODE: u8 = 0x4A;
    type Reply = bool;

    fn data(&self) -> Vec<u8> {
        vec![SOL]
    }

    fn reply(&self, data: &[u8]) -> Result<bool, Malformed> {
        let [_capacity, instances] = Reader::new(data).array("payload activation")?;
        Ok(instances & 1 << (INSTANCE - 1) != 0)
    }
}

/// Deactivate Payload (IPMI 2.0 §24.2) for serial-over-LAN.
#[derive(Debug, Clone, Copy)]
pub struct DeactivateSol;

impl Command for DeactivateSol {
    const NAME: &'static str = "Deactivate Payload";
    const NET_FN: u8 = APP;
    const CODE: u8 = 0x49;
    type Reply = ();

    fn data(&self) -> Vec<u8> {
        vec![SOL, INSTANCE, 0, 0, 0, 0]
    }

    fn reply(&self, _: &[u8]) -> Result<(), Malformed> {
        Ok(())
    }
}
