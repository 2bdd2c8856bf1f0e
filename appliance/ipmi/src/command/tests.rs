//! Tests of commands against the tables of the standard, and of cipher suite lists from real BMCs.

use super::boot::*;
use super::chassis::*;
use super::session::*;
use super::*;

#[test]
fn boot_flags_on_the_wire() {
    let boot = |target, persistent, efi| {
        SetBootOption::Flags(BootRequest { target, persistent, efi }).data()
    };
    assert_eq!(boot(BootTarget::Pxe, false, false), [5, 0x80, 0x04, 0, 0, 0]);
    assert_eq!(boot(BootTarget::Pxe, false, true), [5, 0xA0, 0x04, 0, 0, 0]);
    assert_eq!(boot(BootTarget::Disk, true, true), [5, 0xE0, 0x08, 0, 0, 0]);
    assert_eq!(boot(BootTarget::SafeMode, false, false), [5, 0x80, 0x0C, 0, 0, 0]);
    assert_eq!(boot(BootTarget::Cdrom, false, false), [5, 0x80, 0x14, 0, 0, 0]);
    assert_eq!(boot(BootTarget::Setup, true, false), [5, 0xC0, 0x18, 0, 0, 0]);
}

#[test]
fn every_override_reads_back() {
    use BootTarget::{Cdrom, Disk, Pxe, SafeMode, Setup};
    for target in [Pxe, Disk, Setup, Cdrom, SafeMode] {
        for (persistent, efi) in [(false, false), (false, true), (true, false), (true, true)] {
            let boot = BootRequest { target, persistent, efi };
            let set = SetBootOption::Flags(boot).data();
            let read = [&[1, 5], &set[1..]].concat();
            assert_eq!(GetBootFlags.reply(&read).unwrap().in_force(), Some(boot));
        }
    }
}

#[test]
fn flags_not_valid_are_not_in_force() {
    let flags = |bytes: &[u8]| GetBootFlags.reply(bytes).unwrap();
    let stale = flags(&[1, 5, 0x00, 0x04, 0, 0, 0]);
    assert_eq!((stale.target, stale.in_force()), (Some(BootTarget::Pxe), None));
    assert_eq!(flags(&[1, 0x85, 0x80, 0x04, 0, 0, 0]).in_force(), None);
    assert_eq!(flags(&[1, 5, 0x80, 0x00, 0, 0, 0]).in_force(), None);
    assert!(GetBootFlags.reply(&[1, 4, 0x80, 0x04, 0, 0, 0]).is_err());
    assert!(GetBootFlags.reply(&[1, 5, 0x80]).is_err());
}

#[test]
fn chassis() {
    assert_eq!(ChassisStatus.reply(&[0x21, 0, 0]), Ok(true));
    assert_eq!(ChassisStatus.reply(&[0x20, 0, 0, 0]), Ok(false));
    assert!(ChassisStatus.reply(&[0x21, 0]).is_err());
    let codes = [
        (PowerRequest::Off, 0),
        (PowerRequest::On, 1),
        (PowerRequest::Cycle, 2),
        (PowerRequest::Reset, 3),
        (PowerRequest::Soft, 5),
    ];
    for (action, code) in codes {
        assert_eq!(ChassisControl(action).data(), [code]);
    }
}

#[test]
fn device_id() {
    let bytes = [0, 3, 9, 0x08, 0x02, 0x9F, 0x91, 0x12, 0x00, 0x02, 0x0F, 0, 0, 0, 0];
    let id = GetDeviceId.reply(&bytes).unwrap();
    assert_eq!(
        id,
        DeviceId { manufacturer: 4753, product: 0x0F02, firmware: (9, 8), ipmi: (2, 0) }
    );
}

#[test]
fn privilege_must_be_granted() {
    assert!(SetPrivilege(OPERATOR).reply(&[3]).is_ok());
    assert!(SetPrivilege(OPERATOR).reply(&[4]).is_ok());
    assert!(SetPrivilege(OPERATOR).reply(&[2]).is_err());
}

#[test]
fn lists_of_suites() {
    let list = [
        0xC0, 0, 0x00, 0x40, 0x80, // 0: nothing at all
        0xC0, 3, 0x01, 0x41, 0x81, // 3
        0xC1, 0x80, 0x57, 0x01, 0x00, 0x01, 0x41, 0x81, // the maker's own 0x80
        0xC0, 17, 0x03, 0x44, 0x81, // 17
    ];
    assert_eq!(suite_numbers(&list), [0, 3, 17]);
    assert_eq!(suite_numbers(&list[..list.len() - 3]), [0, 3, 17]);
    assert_eq!(suite_numbers(&list[..list.len() - 4]), [0, 3]);
    assert!(suite_numbers(&[0xC1, 0x80, 0x57]).is_empty());
    assert!(suite_numbers(&[0x42, 0xC0, 17]).is_empty());
}
