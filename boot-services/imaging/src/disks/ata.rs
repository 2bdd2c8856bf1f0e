//! ATA disks: commands through the kernel's SCSI layer (SAT-4, 12.2.3, ATA PASS-THROUGH), and the
//! disk's properties (ACS-4, 7.13, IDENTIFY DEVICE).

use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Duration;

use crate::sys::{self, ScsiAnswer, Transfer};

/// Length of a command's data block, in bytes.
pub const BLOCK: usize = 512;
/// Opcode of IDENTIFY DEVICE (ACS-4, 7.13).
const IDENTIFY: u8 = 0xec;
/// Timeout of commands without access to the medium. The time is for a disk that must spin up
/// first.
pub const SOON: Duration = Duration::from_secs(30);

/// ATA command with a 28-bit LBA.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Task {
    /// Opcode of the command.
    pub command: u8,
    /// Value of the feature register: subcommand or options.
    pub features: u8,
    /// LBA registers: bits 0 to 23 of the LBA, lowest byte first.
    pub lba: [u8; 3],
    /// Maximum duration of the command.
    pub timeout: Duration,
}

/// Data block of a command.
#[derive(Debug)]
pub enum Data<'a> {
    /// Command without a data block.
    None,
    /// Block that the disk returns.
    In(&'a mut [u8; BLOCK]),
    /// Block that is sent to the disk.
    Out(&'a [u8; BLOCK]),
}

/// Device that executes ATA commands: a disk, or a test double.
pub trait Drive {
    /// Executes a command. Returns the LBA registers after a command without data, else zeros.
    ///
    /// # Errors
    /// The disk or the host adapter reports a failure.
    fn perform(&mut self, task: &Task, data: Data<'_>) -> io::Result<[u8; 3]>;
}

/// Executes IDENTIFY DEVICE. Returns the data block.
///
/// # Errors
/// The device is not an ATA disk, or does not respond.
pub fn identify(drive: &mut impl Drive) -> io::Result<Box<[u8; BLOCK]>> {
    let mut block = Box::new([0; BLOCK]);
    let task = Task { command: IDENTIFY, features: 0, lba: [0; 3], timeout: SOON };
    drive.perform(&task, Data::In(&mut block))?;
    Ok(block)
}

/// Returns word `number` of the data of IDENTIFY DEVICE; 0 if `number` is above 255.
pub fn word(identified: &[u8; BLOCK], number: usize) -> u16 {
    let at = number * 2;
    let bytes = identified.get(at..at + 2).and_then(<[u8]>::first_chunk).copied();
    u16::from_le_bytes(bytes.unwrap_or_default())
}

/// ATA disk of this machine, behind the SCSI layer.
#[derive(Debug)]
pub struct Ata(File);

impl Ata {
    /// Opens the disk at a path such as `/dev/sda`.
    ///
    /// # Errors
    /// The path cannot be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        File::open(path).map(Self)
    }
}

impl Drive for Ata {
    fn perform(&mut self, task: &Task, data: Data<'_>) -> io::Result<[u8; 3]> {
        let command = wrapped(task, &data);
        let transfer = match data {
            Data::None => Transfer::None,
            Data::In(block) => Transfer::From(block),
            Data::Out(block) => Transfer::To(block),
        };
        registers(&sys::scsi(&self.0, &command, transfer, task.timeout)?)
    }
}

/// Builds SCSI command ATA PASS-THROUGH (16). Requests the registers only for a command without
/// data.
fn wrapped(task: &Task, data: &Data<'_>) -> [u8; 16] {
    /// Values of the protocol field, which begins at bit 1.
    const NON_DATA: u8 = 3 << 1;
    const PIO_IN: u8 = 4 << 1;
    const PIO_OUT: u8 = 5 << 1;
    /// CK_COND: the device returns the registers as sense data.
    const CHECK: u8 = 1 << 5;
    /// BYT_BLOK and T_LENGTH: the count register has the transfer length in blocks.
    const BLOCKS: u8 = 1 << 2 | 2;
    const FROM_DISK: u8 = 1 << 3;
    let (protocol, flags, count) = match data {
        Data::None => (NON_DATA, CHECK, 0),
        Data::In(_) => (PIO_IN, BLOCKS | FROM_DISK, 1),
        Data::Out(_) => (PIO_OUT, BLOCKS, 1),
    };
    let [low, middle, high] = task.lba;
    let mut command = [0; 16];
    command[..3].copy_from_slice(&[0x85, protocol, flags]);
    command[4] = task.features;
    command[6] = count;
    (command[8], command[10], command[12]) = (low, middle, high);
    command[14] = task.command;
    command
}

/// Returns the LBA registers of a response. A failure in the registers is an error.
pub fn registers(answer: &ScsiAnswer) -> io::Result<[u8; 3]> {
    const CHECK_CONDITION: u8 = 0x02;
    /// Failure bits: ERROR and DEVICE FAULT of the status register, ABORT of the error register.
    const FAILED: u8 = 0x01 | 0x20;
    const ABORTED: u8 = 0x04;
    if answer.host != 0 {
        let what = format!("the adapter ended the command with {:#x}", answer.host);
        return Err(io::Error::other(what));
    }
    let sense = &answer.sense;
    // ATA Status Return (SAT-4, 12.2.2.7): as a descriptor, or in the fields of fixed sense data.
    let (error, status, lba) = match (sense[0] & 0x7f, sense[8]) {
        (0x72, 0x09) => (sense[11], sense[21], [sense[15], sense[17], sense[19]]),
        (0x70, _) if answer.status == CHECK_CONDITION => {
            (sense[3], sense[4], [sense[9], sense[10], sense[11]])
        }
        _ if answer.status == 0 => return Ok([0; 3]),
        _ => return Err(io::Error::other("it does not support ATA commands")),
    };
    match (status & FAILED, error & ABORTED) {
        (0, _) if status != 0 => Ok(lba),
        (0, _) => Err(io::Error::other("it does not support ATA commands")),
        (_, 0) => {
            let what = format!("the disk failed: status {status:#04x}, error {error:#04x}");
            Err(io::Error::other(what))
        }
        _ => Err(io::Error::other("the disk aborted the command")),
    }
}

#[cfg(test)]
mod tests {
    use super::{BLOCK, Data, SOON, ScsiAnswer, Task, registers, wrapped};

    #[test]
    fn commands_are_wrapped_as_sat_says() {
        let smart = Task { command: 0xb0, features: 0xda, lba: [0, 0x4f, 0xc2], timeout: SOON };
        let bytes = wrapped(&smart, &Data::None);
        assert_eq!(bytes, [0x85, 6, 0x20, 0, 0xda, 0, 0, 0, 0, 0, 0x4f, 0, 0xc2, 0, 0xb0, 0]);
        let bytes = wrapped(&smart, &Data::In(&mut [0; BLOCK]));
        assert_eq!((bytes[1], bytes[2], bytes[6]), (8, 0x0e, 1));
        let bytes = wrapped(&smart, &Data::Out(&[0; BLOCK]));
        assert_eq!((bytes[1], bytes[2], bytes[6]), (10, 0x06, 1));
    }

    fn answer(status: u8, host: u16, sense: &[u8]) -> ScsiAnswer {
        let mut all = [0; 32];
        all[..sense.len()].copy_from_slice(sense);
        ScsiAnswer { status, host, sense: all }
    }

    #[test]
    fn registers_come_in_two_forms() {
        let descriptor =
            [0x72, 1, 0, 0x1d, 0, 0, 0, 14, 9, 12, 0, 0, 0, 0, 0, 0xaa, 0, 0xf4, 0, 0x2c, 0, 0x50];
        assert_eq!(registers(&answer(2, 0, &descriptor)).unwrap(), [0xaa, 0xf4, 0x2c]);
        let fixed = [0x70, 0, 1, 0, 0x50, 0, 0, 10, 0, 0xaa, 0xf4, 0x2c, 0, 0x1d];
        assert_eq!(registers(&answer(2, 0, &fixed)).unwrap(), [0xaa, 0xf4, 0x2c]);
        assert_eq!(registers(&answer(0, 0, &[])).unwrap(), [0; 3]);
    }

    #[test]
    fn failures_are_told_apart() {
        let with = |error, status| {
            let mut sense = [0; 22];
            sense[0] = 0x72;
            (sense[8], sense[11], sense[21]) = (9, error, status);
            registers(&answer(2, 0, &sense)).unwrap_err().to_string()
        };
        assert_eq!(with(4, 0x51), "the disk aborted the command");
        assert_eq!(with(0x40, 0x51), "the disk failed: status 0x51, error 0x40");
        let none = registers(&answer(2, 0, &[0x70, 0, 5, 0, 0, 0, 0, 10])).unwrap_err();
        assert_eq!(none.to_string(), "it does not support ATA commands");
        let away = registers(&answer(0, 1, &[])).unwrap_err();
        assert_eq!(away.to_string(), "the adapter ended the command with 0x1");
    }
}
