//! Unknown machines, and machines without a workflow.

use scenarios::{BootOrder, Lab, LabConfig, NucConfig, RackConfig, poll};

use crate::watch::{SMALL, install_directly};

#[test]
fn an_unknown_machine_is_not_answered_and_is_recorded() {
    let mut nuc = NucConfig::bios();
    nuc.boot_order = BootOrder::NetworkFirst;
    let rack = RackConfig::new("unknown-machine").nuc(nuc).capture("udp port 67 or udp port 68");
    let lab = Lab::start(LabConfig::new(rack)).unwrap();
    lab.rack.nuc(1).power_on().unwrap();
    let recorded = || {
        let story = lab.story("52:54:00:77:00:01").ok()?;
        story.contains("no Hardware has this MAC").then_some(())
    };
    poll("the unknown machine to be recorded", SMALL, recorded).unwrap();
    lab.rack.nuc(1).serial().wait_for("No more network devices", SMALL).unwrap();
    let datagrams = lab.rack.capture().unwrap().datagrams().unwrap();
    assert!(datagrams.iter().any(|datagram| datagram.target.port() == 67));
    assert!(!datagrams.iter().any(|datagram| datagram.source.port() == 67), "nothing was answered");
    lab.rack.succeed();
}

#[test]
fn a_machine_without_a_workflow_boots_its_disk() {
    let mut nuc = NucConfig::bios();
    nuc.boot_order = BootOrder::NetworkFirst;
    let lab = Lab::start(LabConfig::new(RackConfig::new("no-workflow").nuc(nuc))).unwrap();
    lab.push_nuc(1, "ssh-ed25519 AAAA scenario", "#cloud-config\n").unwrap();
    install_directly(&lab);
    lab.rack.nuc(1).power_on().unwrap();
    lab.rack.nuc(1).serial().wait_for("TINY-BOOTED", SMALL).unwrap();
    lab.rack.succeed();
}
