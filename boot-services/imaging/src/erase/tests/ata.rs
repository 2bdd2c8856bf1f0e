//! Tests with a simulated ATA disk, which has the security states of ACS-4, 4.18, and faults.

use std::io;
use std::path::Path;

use super::super::ata::{PASSWORD, Security, erase, security};
use crate::disks::ata::{BLOCK, Data, Drive, Task};

/// Fault of the simulated disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    /// The disk aborts the erase.
    Erase,
    /// The disk aborts the erase and locks itself.
    EraseAndLock,
    /// The disk aborts the erase, and all later commands fail.
    Dead,
    /// The erase succeeds, but the password stays set.
    Stays,
}

struct Fake {
    password: Option<[u8; 32]>,
    locked: bool,
    prepared: bool,
    enhanced: bool,
    fault: Fault,
    erased: Option<bool>,
    commands: Vec<u8>,
    timeout: u64,
}

impl Fake {
    fn new(fault: Fault) -> Self {
        Self {
            password: None,
            locked: false,
            prepared: false,
            enhanced: true,
            fault,
            erased: None,
            commands: Vec::new(),
            timeout: 0,
        }
    }

    fn locked_with(password: &str) -> Self {
        let mut bytes = [0; 32];
        bytes[..password.len()].copy_from_slice(password.as_bytes());
        Self { password: Some(bytes), locked: true, ..Self::new(Fault::None) }
    }

    fn identified(&self) -> [u8; BLOCK] {
        let bits = [true, self.password.is_some(), self.locked, false, false, self.enhanced];
        let set = bits.iter().enumerate().map(|(bit, set)| u16::from(*set) << bit);
        let mut block = [0; BLOCK];
        for (word, value) in [(128, set.sum::<u16>()), (89, 60), (90, 0x8001)] {
            block[word * 2..word * 2 + 2].copy_from_slice(&value.to_le_bytes());
        }
        block
    }

    fn take(&mut self, command: u8, block: &[u8; BLOCK]) -> bool {
        let given = block[2..34].first_chunk::<32>().copied();
        let prepared = std::mem::take(&mut self.prepared);
        let right = self.password.is_some() && self.password == given && block[0] & 1 == 0;
        match command {
            0xf1 if !self.locked => self.password = given,
            0xf2 if right => self.locked = false,
            0xf6 if right && !self.locked => self.password = None,
            0xf4 if right && prepared && !self.locked => match self.fault {
                Fault::None | Fault::Stays => {
                    self.erased = Some(block[0] & 2 != 0);
                    if self.fault == Fault::None {
                        self.password = None;
                    }
                }
                Fault::Erase | Fault::Dead => return false,
                Fault::EraseAndLock => {
                    self.locked = true;
                    return false;
                }
            },
            _ => return false,
        }
        true
    }
}

impl Drive for Fake {
    fn perform(&mut self, task: &Task, data: Data<'_>) -> io::Result<[u8; 3]> {
        let dead = self.fault == Fault::Dead && self.commands.contains(&0xf4);
        self.commands.push(task.command);
        let done = match (task.command, data) {
            _ if dead => false,
            (0xec, Data::In(block)) => {
                *block = self.identified();
                true
            }
            (0xf3, Data::None) => {
                self.prepared = true;
                true
            }
            (command, Data::Out(block)) => {
                if command == 0xf4 {
                    self.timeout = task.timeout.as_secs();
                }
                self.take(command, block)
            }
            _ => false,
        };
        if done { Ok([0; 3]) } else { Err(io::Error::other("the disk aborted the command")) }
    }
}

fn run(fake: &mut Fake, enhanced: bool) -> Result<(), String> {
    erase(fake, enhanced, Path::new("/dev/sda"))
}

#[test]
fn a_disk_is_erased_and_left_open() {
    for enhanced in [false, true] {
        let mut fake = Fake::new(Fault::None);
        run(&mut fake, enhanced).unwrap();
        assert_eq!((fake.erased, fake.password), (Some(enhanced), None));
        assert_eq!(fake.commands, [0xec, 0xf1, 0xf3, 0xf4, 0xec], "prepared just before");
        assert_eq!(fake.timeout, if enhanced { 1800 } else { 120 * 120 });
    }
}

#[test]
fn a_disk_that_an_erase_before_has_left_locked_is_opened() {
    let mut fake = Fake::locked_with(PASSWORD);
    run(&mut fake, true).unwrap();
    assert_eq!((fake.erased, fake.password), (Some(true), None));
    let mut other = Fake::locked_with("another");
    let error = run(&mut other, true).unwrap_err();
    assert!(error.contains("unknown password") && error.contains("PSID"), "{error}");
    assert!(other.locked && other.erased.is_none());
}

#[test]
fn no_failure_leaves_it_locked_unsaid() {
    let mut fake = Fake::new(Fault::Erase);
    let error = run(&mut fake, false).unwrap_err();
    assert_eq!(
        error,
        "its security erase failed (the disk aborted the command); its password was removed again"
    );
    assert!(fake.password.is_none() && !fake.locked);

    let mut fake = Fake::new(Fault::EraseAndLock);
    let error = run(&mut fake, true).unwrap_err();
    assert!(error.ends_with("its password was removed again"), "{error}");
    assert!(fake.password.is_none() && !fake.locked);

    let mut fake = Fake::new(Fault::Stays);
    let error = run(&mut fake, true).unwrap_err();
    assert!(error.starts_with("its enhanced security erase left the password set"), "{error}");
    assert!(fake.password.is_none());

    let mut fake = Fake::new(Fault::Dead);
    let error = run(&mut fake, true).unwrap_err();
    for words in [
        "it may be locked with the password tinbox",
        "hdparm --security-unlock tinbox /dev/sda",
        "hdparm --security-disable tinbox /dev/sda",
    ] {
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn security_is_read() {
    let identified = |status: u16, plain: u16, enhanced: u16| {
        let mut block = [0; BLOCK];
        for (word, value) in [(128, status), (89, plain), (90, enhanced)] {
            block[word * 2..word * 2 + 2].copy_from_slice(&value.to_le_bytes());
        }
        security(&block)
    };
    // A Samsung SSD as `hdparm -I` shows it: "supported, not enabled, not locked, frozen, not
    // expired: security count, supported: enhanced erase, 4min for SECURITY ERASE UNIT, 8min …".
    let ssd = identified(0x0029, 2, 4);
    assert!(ssd.supported && ssd.frozen && ssd.enhanced && !ssd.locked && !ssd.enabled);
    assert_eq!(ssd.minutes, [Some(4), Some(8)]);
    assert!(ssd.erase().unwrap_err().contains("frozen"));
    // A hard disk of 4 TB. Seven bits mean more than 508 minutes; fifteen bits state 530 minutes.
    assert_eq!(identified(0x0021, 0xff, 0x8000 | 265).minutes, [None, Some(530)]);
    let locked = identified(0x0027, 0, 0xffff);
    assert!(locked.enabled && locked.locked);
    assert_eq!(locked.minutes, [None, None]);
    assert!(identified(0x0037, 0, 0).erase().unwrap_err().contains("too many wrong passwords"));
    assert_eq!(identified(0, 0, 0), Security::default());
}
