//! Boot options of the chassis (IPMI 2.0 §28.12 and §28.13).

use super::{CHASSIS, Command, Malformed, Reader};

/// Boot device that IPMI can select (IPMI 2.0 table 28-14, parameter 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BootTarget {
    /// Network boot by PXE.
    Pxe,
    /// Default disk of the machine.
    Disk,
    /// Setup program of the firmware.
    Setup,
    /// CD or DVD, real or virtual.
    Cdrom,
    /// Default disk, with the operating system in safe mode.
    SafeMode,
}

/// Boot device that overrides the boot order of the firmware.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BootRequest {
    /// Device to boot from.
    pub target: BootTarget,
    /// True for every later boot, false for the next boot only.
    pub persistent: bool,
    /// True to boot in UEFI mode, false in legacy BIOS mode.
    pub efi: bool,
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
    /// Boot device; `None` without an override, or for a device that [`BootTarget`] lacks.
    pub target: Option<BootTarget>,
}

impl BootFlags {
    /// Returns the override; `None` if the flags are not valid or name no known device.
    pub fn in_force(self) -> Option<BootRequest> {
        let Self { valid, persistent, efi, target } = self;
        target.filter(|_| valid).map(|target| BootRequest { target, persistent, efi })
    }

    fn from_bytes([flags, selector]: [u8; 2]) -> Self {
        let target = match selector >> 2 & 0x0F {
            0b0001 => Some(BootTarget::Pxe),
            // For the firmware, remotely connected media are an ordinary disk or CD.
            0b0010 | 0b1011 => Some(BootTarget::Disk),
            0b0011 => Some(BootTarget::SafeMode),
            0b0101 | 0b1000 => Some(BootTarget::Cdrom),
            0b0110 => Some(BootTarget::Setup),
            _ => None,
        };
        Self {
            valid: flags & 0x80 != 0,
            persistent: flags & 0x40 != 0,
            efi: flags & 0x20 != 0,
            target,
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
    Flags(BootRequest),
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
                let device = match boot.target {
                    BootTarget::Pxe => 0b0001,
                    BootTarget::Disk => 0b0010,
                    BootTarget::SafeMode => 0b0011,
                    BootTarget::Cdrom => 0b0101,
                    BootTarget::Setup => 0b0110,
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
