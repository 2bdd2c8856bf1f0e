//! Power control by IPMI from the box.

use qemu::{Action, BootDevice, NucConfig, Origin, PowerEvent, Rack};

use crate::{LONG, config};

fn small() -> NucConfig {
    NucConfig { memory_mib: 64, disk_bytes: 1 << 20, ..NucConfig::bios() }
}

fn summary(events: &[PowerEvent]) -> Vec<(Origin, Action, bool)> {
    events.iter().map(|event| (event.origin, event.action, event.changed)).collect()
}

#[test]
fn ipmitool_really_starts_and_stops_the_machine_behind_the_bmc() {
    let rack = Rack::build(config("power").nucs(2, &small())).expect("build the rack");
    let (one, two) = (rack.nuc(1), rack.nuc(2));
    let ipmi = |arguments: &[&str]| rack.ipmitool(1, arguments).expect("ipmitool");
    let status = || ipmi(&["chassis", "power", "status"]);

    assert_eq!(status(), "Chassis Power is off\n");
    assert_eq!((one.pid(), two.pid()), (None, None));

    ipmi(&["chassis", "power", "on"]);
    let first = one.pid().expect("QEMU runs");
    let program = std::fs::read_to_string(format!("/proc/{first}/comm")).expect("read its name");
    assert!(program.starts_with("qemu-system"), "{program}");
    assert_eq!(status(), "Chassis Power is on\n");
    assert_eq!(two.pid(), None, "the other NUC's BMC was not asked");
    one.serial().wait_for("SeaBIOS", LONG).expect("the firmware's banner");

    ipmi(&["chassis", "power", "on"]);
    assert_eq!(one.pid(), Some(first), "a second `on` changes nothing");

    ipmi(&["chassis", "power", "cycle"]);
    let second = qemu::poll("the second QEMU", LONG, || one.pid().filter(|pid| *pid != first));
    second.expect("a power cycle is a new QEMU");

    ipmi(&["chassis", "power", "off"]);
    assert_eq!(status(), "Chassis Power is off\n");
    assert_eq!(one.pid(), None);
    ipmi(&["chassis", "power", "off"]);

    use Action::{Off, On};
    let expected = [
        (Origin::Bmc, On, true),
        (Origin::Bmc, On, false),
        (Origin::Bmc, Off, true),
        (Origin::Bmc, On, true),
        (Origin::Bmc, Off, true),
        (Origin::Bmc, Off, false),
    ];
    assert_eq!(summary(&one.power_events()), expected);
    assert_eq!(one.count(Origin::Bmc, On), 2);
    assert_eq!(summary(&two.power_events()), []);
    rack.succeed();
}

#[test]
fn a_power_cut_is_the_harness_s_doing_and_the_machine_stays_off() {
    let rack = Rack::build(config("cut").nuc(small())).expect("build the rack");
    let nuc = rack.nuc(1);
    rack.ipmitool(1, &["chassis", "power", "on"]).expect("switch on");
    nuc.serial().wait_for("SeaBIOS", LONG).expect("the firmware's banner");
    let picture = rack.dir().join("screen.png");
    nuc.screenshot(&picture).expect("take a screenshot");
    let png = std::fs::read(&picture).expect("read the screenshot");
    assert!(png.starts_with(b"\x89PNG\r\n\x1a\n"));

    nuc.cut_power();
    assert!(!nuc.is_on());
    let status = rack.ipmitool(1, &["chassis", "power", "status"]).expect("ask");
    assert_eq!(status, "Chassis Power is off\n");
    assert!(rack.ipmitool(1, &["chassis", "power", "reset"]).is_err(), "off cannot be reset");

    let events = summary(&nuc.power_events());
    assert_eq!(
        events,
        [(Origin::Bmc, Action::On, true), (Origin::Harness, Action::PowerCut, true)]
    );
    rack.succeed();
}

#[test]
fn the_boot_device_is_read_back_and_the_wrong_password_is_refused() {
    let rack = Rack::build(config("bmc").nuc(small())).expect("build the rack");
    rack.ipmitool(1, &["chassis", "bootdev", "pxe"]).expect("set the boot device");
    assert_eq!(rack.nuc(1).boot_override(), BootDevice::Network);
    let shown = rack.ipmitool(1, &["chassis", "bootparam", "get", "5"]).expect("read it back");
    assert!(shown.contains("Force PXE"), "{shown}");
    rack.ipmitool(1, &["chassis", "bootdev", "none"]).expect("take it back");
    assert_eq!(rack.nuc(1).boot_override(), BootDevice::Normal);
    // ipmi_sim does not report the refusal; the boot device stays unchanged, because there is no
    // CD.
    let _ = rack.ipmitool(1, &["chassis", "bootdev", "cdrom"]);
    assert_eq!(rack.nuc(1).boot_override(), BootDevice::Normal);

    let address = rack.nuc(1).bmc().address.to_string();
    let mut command = rack.box_command("ipmitool");
    command.args(["-I", "lanplus", "-C", "3", "-E", "-U", "admin", "-R", "1", "-H", &address]);
    command.args(["chassis", "power", "on"]).env("IPMI_PASSWORD", "not the password");
    let output = command.output().expect("run ipmitool");
    assert!(!output.status.success());
    assert!(!rack.nuc(1).is_on());
    rack.succeed();
}
