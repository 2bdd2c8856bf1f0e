//! From off to installed with each kind of power control: the box itself starts the machine. With
//! only Wake-on-LAN, the installed system powers the machine off.

use std::time::Duration;

use scenarios::{Action, BmcKind, BootOrder, Lab, LabConfig, NucConfig, Origin, RackConfig, poll};

use crate::faults::bad_server;
use crate::watch::{ONE_START, SMALL, small_lab_of, switched_on, tiny, told, wait_small_system};

/// Timeout for the installation of Debian and its first boot, emulated on a busy machine.
const DEBIAN: Duration = Duration::from_secs(1500);
/// User data that installs the power hook.
const WITH_HOOK: &str = "#cloud-config\n\
    runcmd:\n\
    - \"curl -fsS http://10.77.0.1:50061/power-hook | sh\"\n";
/// Reason of the power state while the hook polls.
const POLLED: &str = "power is on: the power hook of its system polled the box";

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

/// Its agent waits for the request, although an action runs.
#[test]
fn a_machine_with_only_wake_on_lan_is_powered_off_by_its_agent() {
    let nuc = NucConfig { boot_order: BootOrder::NetworkFirst, ..NucConfig::bios() };
    let rack = RackConfig::new("agent-off").nuc(nuc).bmc(BmcKind::WakeOnLan);
    let mut server = None;
    let lab = small_lab_of(LabConfig::new(rack), |lab| {
        // So slow that the action still runs when the machine is powered off.
        let (process, image) = bad_server(lab, &["--rate", "20000"]);
        server = Some(process);
        image
    });
    lab.create_workflow("install", 1).unwrap();
    let begun = || (told(&lab, "action stream-image started") > 0).then_some(());
    poll("the action to begin", SMALL, begun).unwrap();
    let nuc = lab.rack.nuc(1);
    assert!(nuc.is_on(), "{:?}", nuc.power_events());
    let said = lab.tinbox(&["machine", "power", "off", "nuc1", "--wait", "--yes"]).unwrap();
    let reason = "power is off: it acknowledged a shutdown and is silent since";
    assert!(said.contains(reason), "{said}");
    let count = nuc.count(Origin::Guest, Action::SoftOff);
    assert_eq!((count, nuc.is_on()), (1, false), "{:?}", nuc.power_events());
    lab.rack.succeed();
}

/// Waits until the power hook of the installed system polls.
fn wait_hook(lab: &Lab) {
    let is_polled = || {
        let said = lab.tinbox(&["machine", "power", "status", "nuc1"]).ok()?;
        said.contains(POLLED).then_some(())
    };
    poll("the power hook to poll", DEBIAN, is_polled).unwrap();
}

#[test]
fn an_installed_debian_with_only_wake_on_lan_is_powered_off_by_its_hook_and_woken_again() {
    let nuc = NucConfig { boot_order: BootOrder::NetworkFirst, ..NucConfig::bios() };
    let rack = RackConfig::new("power-hook").nuc(nuc).bmc(BmcKind::WakeOnLan);
    let lab = Lab::start(LabConfig::new(rack)).unwrap();
    lab.push_nuc(1, "ssh-ed25519 AAAA scenario", WITH_HOOK).unwrap();
    lab.push_debian().unwrap();
    let workflow = lab.create_workflow("debian", 1).unwrap();
    lab.wait_success(&workflow, DEBIAN).unwrap();
    wait_hook(&lab);

    let nuc = lab.rack.nuc(1);
    assert_eq!(nuc.count(Origin::Guest, Action::SoftOff), 0, "{:?}", nuc.power_events());
    let said = lab.tinbox(&["machine", "power", "off", "nuc1", "--wait", "--yes"]).unwrap();
    let reason = "power is off: it acknowledged a shutdown and is silent since";
    assert!(said.contains(reason), "{said}");
    poll("Debian to power off", DEBIAN, || (!nuc.is_on()).then_some(())).unwrap();
    assert_eq!(nuc.count(Origin::Guest, Action::SoftOff), 1, "{:?}", nuc.power_events());

    let said = lab.tinbox(&["machine", "power", "on", "nuc1", "--wait"]).unwrap();
    assert!(said.contains("power is on: it "), "{said}");
    assert!(nuc.is_on(), "{:?}", nuc.power_events());
    // The next boot does not get the request of the boot before.
    wait_hook(&lab);
    assert_eq!(nuc.count(Origin::Guest, Action::SoftOff), 1, "{:?}", nuc.power_events());
    assert_eq!(nuc.count(Origin::Network, Action::On), 2, "{:?}", nuc.power_events());
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
fn a_machine_with_power_over_ethernet_is_started_by_its_port_and_installed() {
    // A port has no boot device: the firmware boots from the network first.
    let nuc = NucConfig { boot_order: BootOrder::NetworkFirst, ..NucConfig::bios() };
    let lab = lab("poe", BmcKind::Poe, nuc);
    install(&lab);
    assert_eq!(switched_on(&lab), 1, "{ONE_START}");
    let said = lab.tinbox(&["machine", "power", "off", "nuc1", "--wait", "--yes"]).unwrap();
    assert!(said.contains("power is off, confirmed"), "{said}");
    let nuc = lab.rack.nuc(1);
    assert!(!nuc.is_on(), "{:?}", nuc.power_events());
    lab.rack.succeed();
}

#[test]
fn a_machine_with_redfish_is_started_by_its_bmc_and_installed() {
    let lab = lab("redfish", BmcKind::Redfish, NucConfig::bios());
    install(&lab);
    assert_eq!(switched_on(&lab), 1, "{ONE_START}");
    lab.rack.succeed();
}
