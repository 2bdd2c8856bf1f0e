//! NICs and addresses that appear after the start of the box.

use firmware::contained::Contained;
use firmware::{FIRST_LINE, PATIENCE, boot_volume, run};
use qemu::poll;

use super::Lab;

/// Name of the NIC in the box's own namespace.
const CARD: &str = "late0";

fn ip(machine: &Contained, arguments: &str) {
    let mut ip = machine.network_command("ip").unwrap();
    run(ip.args(arguments.split(' '))).unwrap();
}

/// `Some` if the box serves its boot files at an address.
fn serves(machine: &Contained, address: &str) -> Option<String> {
    let mut ask = machine.network_command("curl").unwrap();
    ask.args(["--silent", "--show-error", "--fail", "--max-time", "5"]);
    run(ask.arg(format!("http://{address}:7080/healthz"))).ok()
}

#[test]
fn a_network_is_served_when_its_card_and_its_addresses_come() {
    let lab = Lab::new("late");
    let (place, disk) = (lab.place("box", 0x65), lab.disk("disk"));
    let settings = format!(
        "[[network]]\ninterface = \"{CARD}\"\naddress = \"10.88.0.1/24\"\n\
         mode = \"reserved\"\nipv6 = true\n"
    );
    boot_volume::put(&disk, "box.toml", settings.as_bytes()).unwrap();
    let machine = place.start(&disk).unwrap();
    machine.serial().wait_for(FIRST_LINE, PATIENCE).unwrap();
    assert_eq!(serves(&machine, "10.88.0.1"), None);
    ip(&machine, &format!("link add {CARD} type veth peer name cable"));
    ip(&machine, "link set cable up");
    poll("the network to be served", PATIENCE, || serves(&machine, "10.88.0.1")).unwrap();
    assert_eq!(serves(&machine, "[fd77::1]"), None);
    ip(&machine, &format!("address add fd77::1/64 dev {CARD}"));
    poll("IPv6 to be served", PATIENCE, || serves(&machine, "[fd77::1]")).unwrap();
    drop(machine);
    lab.succeed();
}
