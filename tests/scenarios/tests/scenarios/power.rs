//! From off to installed with each kind of power control: the box itself starts the machine.

use scenarios::{Action, BmcKind, BootOrder, Lab, LabConfig, NucConfig, Origin, RackConfig};

use crate::watch::{ONE_START, SMALL, small_lab_of, switched_on, tiny, wait_small_system};

fn lab(name: &str, kind: BmcKind, nuc: NucConfig) -> Lab {
    let config = LabConfig::new(RackConfig::new(name).nuc(nuc).bmc(kind));
    let lab = small_lab_of(config, tiny);
    assert!(!lab.rack.nuc(1).is_on(), "the machine begins switched off");
    lab
}

fn install(lab: &Lab) {
    let workflow = lab.create_workflow("install", 1).unwrap();
    lab.wait_success(&workflow, SMALL).unwrap();
    wait_small_system(lab);
}

#[test]
fn a_machine_with_only_wake_on_lan_is_started_by_a_magic_packet_and_installed() {
    // A magic packet has no boot device: the firmware boots from the network first.
    let nuc = NucConfig { boot_order: BootOrder::NetworkFirst, ..NucConfig::bios() };
    let lab = lab("wake-on-lan", BmcKind::WakeOnLan, nuc);
    install(&lab);
    let nuc = lab.rack.nuc(1);
    assert_eq!(nuc.count(Origin::Network, Action::On), 1, "{:?}", nuc.power_events());
    assert_eq!(switched_on(&lab), 0, "it has no BMC: {:?}", nuc.power_events());
    let said = lab.tinbox(&["machine", "power", "status", "nuc1"]).unwrap();
    assert!(said.contains("power is on: it "), "{said}");
    lab.rack.succeed();
}

#[test]
fn a_machine_behind_a_webhook_is_started_by_signed_requests_and_installed() {
    let lab = lab("webhook", BmcKind::Webhook, NucConfig::bios());
    install(&lab);
    assert_eq!(switched_on(&lab), 1, "{ONE_START}");
    lab.rack.succeed();
}

#[test]
fn a_machine_with_intel_amt_is_started_by_its_management_engine_and_installed() {
    let lab = lab("amt", BmcKind::Amt, NucConfig::bios());
    install(&lab);
    assert_eq!(switched_on(&lab), 1, "{ONE_START}");
    lab.rack.succeed();
}

#[test]
fn a_machine_with_redfish_is_started_by_its_bmc_and_installed() {
    let lab = lab("redfish", BmcKind::Redfish, NucConfig::bios());
    install(&lab);
    assert_eq!(switched_on(&lab), 1, "{ONE_START}");
    lab.rack.succeed();
}
