//! The one-time network boot, and the permanent order after it, in both firmwares.

use std::time::SystemTime;

use qemu::{Action, BootOrder, Mark, NucConfig, Origin, Rack};
use stdx::MacAddr;

use crate::{LONG, config};

const DHCP: &str = "udp port 67 or udp port 68";

/// `mov dx, 0xcf9; mov al, 6; out dx, al`: a hard reset by the chipset's reset register.
const REBOOT: [u8; 6] = [0xba, 0xf9, 0x0c, 0xb0, 0x06, 0xee];
/// `mov dx, 0x604; mov ax, 0x2000; out dx, ax`: ACPI's soft off, where SeaBIOS puts q35's PM1.
const SWITCH_OFF: [u8; 7] = [0xba, 0x04, 0x06, 0xb8, 0x00, 0x20, 0xef];

/// A disk whose boot record prints `DISK` to the first serial port, executes the machine code
/// `then`, and halts.
///
/// `mov dx, 0x3f8`, then for each letter `mov al, LETTER; out dx, al`; at the end `hlt; jmp $-1`.
fn boot_record(then: &[u8]) -> Vec<u8> {
    let mut disk = vec![0xba, 0xf8, 0x03];
    for letter in b"\r\nDISK\r\n" {
        disk.extend([0xb0, *letter, 0xee]);
    }
    disk.extend(then);
    disk.extend([0xf4, 0xeb, 0xfd]);
    disk.resize(510, 0);
    disk.extend([0x55, 0xaa]);
    disk.resize(1 << 20, 0);
    disk
}

fn small_bios() -> NucConfig {
    NucConfig { memory_mib: 64, disk_bytes: 1 << 20, ..NucConfig::bios() }
}

/// DHCPDISCOVERs (RFC 2131: option 53 is the first in every ROM here) of one machine since `then`.
fn discovers(rack: &Rack, mac: MacAddr, then: SystemTime) -> usize {
    let seen = rack.capture().expect("configured").datagrams().expect("read the capture");
    seen.iter()
        .filter(|d| d.at >= then && d.from == mac && d.target.port() == 67)
        .filter(|d| d.payload.get(240..243) == Some(&[53, 1, 1]))
        .count()
}

#[test]
fn bios_boots_the_network_once_and_then_its_disk_again() {
    let rack = Rack::build(config("bios").nuc(small_bios()).capture(DHCP)).expect("build the rack");
    let nuc = rack.nuc(1);
    std::fs::write(nuc.disk(), boot_record(&[])).expect("write the boot record");
    let ipmi = |arguments: &[&str]| rack.ipmitool(1, arguments).expect("ipmitool");
    let start = SystemTime::now();

    ipmi(&["chassis", "power", "on"]);
    let (_, mark) = nuc.serial().wait_for_after(Mark::START, "^DISK$", LONG).expect("disk");
    assert_eq!(discovers(&rack, nuc.mac(), start), 0, "disk first means no network boot");

    // With the machine on: the next boot, after a reset, is from the network.
    ipmi(&["chassis", "bootdev", "pxe"]);
    ipmi(&["chassis", "power", "reset"]);
    qemu::poll("a DHCPDISCOVER", LONG, || (discovers(&rack, nuc.mac(), start) > 0).then_some(()))
        .expect("the network boot");
    assert!(nuc.serial().lines_after(mark).iter().all(|line| line.text != "DISK"));

    // The firmware keeps sending until it is reset.
    ipmi(&["chassis", "power", "reset"]);
    let reset = SystemTime::now();
    let (_, mark) = nuc.serial().wait_for_after(mark, "^DISK$", LONG).expect("disk again");
    assert_eq!(discovers(&rack, nuc.mac(), reset), 0, "the override was for one boot");

    // With the machine off: the same override applies.
    ipmi(&["chassis", "power", "off"]);
    ipmi(&["chassis", "bootdev", "pxe"]);
    let on = SystemTime::now();
    ipmi(&["chassis", "power", "on"]);
    qemu::poll("a DHCPDISCOVER", LONG, || (discovers(&rack, nuc.mac(), on) > 0).then_some(()))
        .expect("the network boot after power on");
    assert!(nuc.serial().lines_after(mark).iter().all(|line| line.text != "DISK"));
    nuc.reset().expect("reset button");
    nuc.serial().wait_for_after(mark, "^DISK$", LONG).expect("disk at last");
    assert_eq!(nuc.count(Origin::Bmc, Action::Reset), 2);
    assert_eq!(nuc.count(Origin::Harness, Action::Reset), 1);
    rack.succeed();
}

#[test]
fn a_guest_that_reboots_is_counted_and_takes_the_one_time_boot_too() {
    let rack = Rack::build(config("reboot").nuc(small_bios()).capture(DHCP)).expect("build");
    let nuc = rack.nuc(1);
    std::fs::write(nuc.disk(), boot_record(&REBOOT)).expect("write the boot record");
    nuc.power_on().expect("switch on");
    let mut mark = Mark::START;
    for _ in 0..3 {
        (_, mark) = nuc.serial().wait_for_after(mark, "^DISK$", LONG).expect("one more boot");
    }
    rack.ipmitool(1, &["chassis", "bootdev", "pxe"]).expect("set the boot device");
    let since = SystemTime::UNIX_EPOCH;
    qemu::poll("a DHCPDISCOVER", LONG, || (discovers(&rack, nuc.mac(), since) > 0).then_some(()))
        .expect("the network boot");
    let boots = nuc.serial().lines().iter().filter(|line| line.text == "DISK").count();
    assert_eq!(nuc.count(Origin::Guest, Action::Reset), boots, "every boot ended with a reboot");
    rack.succeed();
}

#[test]
fn a_guest_that_switches_itself_off_is_off() {
    let rack = Rack::build(config("off").nuc(small_bios())).expect("build the rack");
    let nuc = rack.nuc(1);
    std::fs::write(nuc.disk(), boot_record(&SWITCH_OFF)).expect("write the boot record");
    rack.ipmitool(1, &["chassis", "power", "on"]).expect("switch on");
    qemu::poll("the guest to switch off", LONG, || (!nuc.is_on()).then_some(())).expect("off");
    let off = || nuc.count(Origin::Guest, Action::SoftOff) == 1;
    qemu::poll("the record of it", LONG, || off().then_some(())).expect("recorded");
    assert!(nuc.serial().lines().iter().any(|line| line.text == "DISK"));
    assert_eq!(nuc.count(Origin::Guest, Action::Died), 0);
    let status = rack.ipmitool(1, &["chassis", "power", "status"]).expect("ask");
    assert_eq!(status, "Chassis Power is off\n");
    rack.succeed();
}

#[test]
fn uefi_boots_the_network_once_and_then_its_disk_again() {
    let nuc = NucConfig { memory_mib: 192, disk_bytes: 1 << 20, ..NucConfig::uefi() };
    let rack = Rack::build(config("uefi").nuc(nuc).capture(DHCP)).expect("build the rack");
    let nuc = rack.nuc(1);
    assert_eq!(nuc.config().boot_order, BootOrder::DiskFirst);
    let first_choice = |mark| {
        let pattern = "Start PXE over IPv4|BdsDxe: failed to load .* from";
        nuc.serial().wait_for_after(mark, pattern, LONG).expect("the firmware's first choice")
    };
    rack.ipmitool(1, &["chassis", "bootdev", "pxe"]).expect("set the boot device");
    rack.ipmitool(1, &["chassis", "power", "on"]).expect("switch on");
    let (line, mark) = first_choice(Mark::START);
    assert!(line.text.contains("PXE"), "{}", line.text);
    let since = SystemTime::UNIX_EPOCH;
    qemu::poll("a DHCPDISCOVER", LONG, || (discovers(&rack, nuc.mac(), since) > 0).then_some(()))
        .expect("EDK2's own PXE client");

    rack.ipmitool(1, &["chassis", "power", "reset"]).expect("reset");
    let (line, _) = first_choice(mark);
    assert!(line.text.contains("Misc Device"), "the blank disk is tried first: {}", line.text);
    rack.succeed();
}
