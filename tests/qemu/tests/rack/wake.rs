//! Machines without a BMC, started by the magic packets of common programs.

use qemu::{Action, BmcKind, NucConfig, Origin, Rack};

use crate::{LONG, config};

fn run(rack: &Rack, program: &str, arguments: &[&str]) {
    let output = rack.box_command(program).args(arguments).output().expect("run the program");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program}: {errors}");
}

#[test]
fn a_magic_packet_of_any_carrier_starts_its_machine_and_no_other() {
    let small = NucConfig { memory_mib: 64, disk_bytes: 1 << 20, ..NucConfig::bios() };
    let rack = config("wake").nucs(2, &small).bmc(BmcKind::WakeOnLan);
    let rack = Rack::build(rack).expect("build the rack");
    let nuc = rack.nuc(1);
    let mac = nuc.mac().to_string();
    // EtherType 0x0842 to the machine and to all; UDP port 9 to all.
    let to_all = ["-i", "10.77.0.255", &mac];
    let senders: [(&str, &[&str]); 3] = [
        ("etherwake", &["-i", "eth0", &mac]),
        ("etherwake", &["-i", "eth0", "-b", "-p", "aa:bb:cc:dd:ee:ff", &mac]),
        ("wakeonlan", &to_all),
    ];
    for (count, (program, arguments)) in (1..).zip(senders) {
        run(&rack, program, arguments);
        qemu::poll("the NUC to wake", LONG, || nuc.is_on().then_some(())).expect(program);
        assert_eq!(nuc.count(Origin::Network, Action::On), count, "{program}");
        nuc.power_off();
    }
    nuc.unplug().expect("unplug");
    run(&rack, "wakeonlan", &to_all);
    // A packet for another machine, as a sign that the listener has read the one before.
    let other = rack.nuc(2);
    run(&rack, "wakeonlan", &["-i", "10.77.0.255", &other.mac().to_string()]);
    qemu::poll("the other NUC to wake", LONG, || other.is_on().then_some(())).expect("wake");
    assert!(!nuc.is_on(), "its cable is out");
    rack.succeed();
}
