//! ATA security erase (ACS-4, 4.18). The erase requires a password, and removes it on success.

use std::path::Path;
use std::time::Duration;

use super::EraseOperation;
use crate::disks::ata::{BLOCK, Data, Drive, SOON, Task, identify, word};

/// Password for the erase, publicly known. It is set only while the erase runs. After a power
/// failure during the erase, the operator unlocks the disk with this password.
pub const PASSWORD: &str = "tinbox";
/// Opcodes of the security commands.
const SET_PASSWORD: u8 = 0xf1;
const UNLOCK: u8 = 0xf2;
const ERASE_PREPARE: u8 = 0xf3;
const ERASE_UNIT: u8 = 0xf4;
const DISABLE_PASSWORD: u8 = 0xf6;
/// Timeout of an erase if the disk does not report its erase time: 24 h.
const UNKNOWN: Duration = Duration::from_secs(24 * 3600);

/// Security state of a disk, from IDENTIFY DEVICE.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Security {
    /// True if the disk supports ATA security.
    pub supported: bool,
    /// True if a user password is set.
    pub enabled: bool,
    /// True if the disk is locked: no correct password since power-on.
    pub locked: bool,
    /// True if security commands are refused until the next power-on.
    pub frozen: bool,
    /// True after too many wrong passwords since power-on.
    pub expired: bool,
    /// True if the disk supports enhanced erase, which includes reallocated sectors.
    pub enhanced: bool,
    /// Erase times that the disk reports, in minutes: normal, then enhanced; `None` if unknown.
    pub minutes: [Option<u32>; 2],
}

/// Decodes the security state from the data of IDENTIFY DEVICE.
pub fn security(identified: &[u8; BLOCK]) -> Security {
    let status = word(identified, 128);
    let has = |bit: u32| status & 1 << bit != 0;
    Security {
        supported: has(0),
        enabled: has(1),
        locked: has(2),
        frozen: has(3),
        expired: has(4),
        enhanced: has(5),
        minutes: [89, 90].map(|number| minutes(word(identified, number))),
    }
}

/// Decodes an erase time, in units of two minutes; 15 bits if bit 15 is set, else 8 bits. Returns
/// minutes; `None` if not reported or above the maximum.
fn minutes(word: u16) -> Option<u32> {
    const LONG: u16 = 1 << 15;
    let (steps, most) =
        if word & LONG != 0 { (word & !LONG, LONG - 1) } else { (word & 0xff, 0xff) };
    (steps != 0 && steps != most).then(|| u32::from(steps) * 2)
}

impl Security {
    /// # Errors
    /// The disk cannot be erased now; the text is the reason and the remedy.
    pub fn erase(&self) -> Result<EraseOperation, String> {
        let reason = match self {
            Self { supported: false, .. } => "it has no ATA security",
            Self { frozen: true, .. } => {
                "the machine's firmware has frozen its ATA security: switch the machine off and \
                on, turn the freeze off in the firmware's setup (security freeze lock, hard disk \
                security), or use zero"
            }
            Self { expired: true, .. } => {
                "it received too many wrong passwords: switch the machine off and on"
            }
            Self { enhanced, .. } => {
                return Ok(EraseOperation::SecureErase { enhanced: *enhanced });
            }
        };
        Err(reason.to_owned())
    }
}

/// Builds a command whose registers are all zero.
fn task(command: u8, timeout: Duration) -> Task {
    Task { command, features: 0, lba: [0; 3], timeout }
}

/// Builds the data block of a security command: control word `bits`, then [`PASSWORD`].
fn block(bits: u16) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    // Bit 0 is clear: the user password, not the master password.
    block[..2].copy_from_slice(&bits.to_le_bytes());
    block[2..2 + PASSWORD.len()].copy_from_slice(PASSWORD.as_bytes());
    block
}

fn give(drive: &mut impl Drive, command: u8, bits: u16, timeout: Duration) -> std::io::Result<()> {
    drive.perform(&task(command, timeout), Data::Out(&block(bits))).map(drop)
}

/// Sets the password and erases the disk. Blocks until the end, which may take hours.
///
/// # Errors
/// The erase failed; the text is the reason and the disk's state.
pub fn erase(drive: &mut impl Drive, enhanced: bool, path: &Path) -> Result<(), String> {
    let identified = identify(drive).map_err(|error| error.to_string())?;
    let before = security(&identified);
    if before.locked {
        give(drive, UNLOCK, 0, SOON).map_err(|error| {
            format!(
                "it is locked with an unknown password ({error}); an earlier erase would have set \
                 {PASSWORD:?}: unlock it with hdparm --security-unlock, or erase it with the PSID \
                 on its label"
            )
        })?;
    }
    // A disk that has a password accepts a new one. The erase below uses the new password.
    give(drive, SET_PASSWORD, 0, SOON)
        .map_err(|error| format!("setting the password for the erase failed ({error})"))?;
    let erased = unit(drive, enhanced, &before);
    let after = identify(drive).map(|identified| security(&identified));
    match (erased, after) {
        (Ok(()), Ok(Security { enabled: false, .. })) => Ok(()),
        (result, Ok(Security { enabled: false, .. })) => result
            .map_err(|error| format!("its {} failed ({error}); it is not locked", name(enhanced))),
        (result, _) => {
            let left = free(drive, path);
            let reason = result.err().map_or_else(
                || format!("its {} left the password set", name(enhanced)),
                |error| format!("its {} failed ({error})", name(enhanced)),
            );
            Err(format!("{reason}; {left}"))
        }
    }
}

fn name(enhanced: bool) -> &'static str {
    if enhanced { "enhanced security erase" } else { "security erase" }
}

fn unit(drive: &mut impl Drive, enhanced: bool, security: &Security) -> std::io::Result<()> {
    const ENHANCED: u16 = 1 << 1;
    let minutes = security.minutes[usize::from(enhanced)];
    // Disks take longer than they state.
    let timeout = minutes
        .map_or(UNKNOWN, |minutes| Duration::from_secs(u64::from(minutes) * 120))
        .max(Duration::from_secs(1800));
    drive.perform(&task(ERASE_PREPARE, SOON), Data::None)?;
    give(drive, ERASE_UNIT, if enhanced { ENHANCED } else { 0 }, timeout)
}

/// Tries to remove the password. Returns a sentence about the disk's state.
fn free(drive: &mut impl Drive, path: &Path) -> String {
    // The disk may be locked or not. The check of the final state below decides.
    let _ = give(drive, UNLOCK, 0, SOON);
    let _ = give(drive, DISABLE_PASSWORD, 0, SOON);
    match identify(drive).map(|identified| security(&identified)) {
        Ok(Security { enabled: false, .. }) => "its password was removed again".to_owned(),
        _ => format!(
            "it may be locked with the password {PASSWORD}: run disk-wipe with ata-secure-erase \
             again, or hdparm --security-unlock {PASSWORD} {0} and hdparm --security-disable \
             {PASSWORD} {0}",
            path.display()
        ),
    }
}
