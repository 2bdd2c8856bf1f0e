//! A machine whose firmware boots in its port's native VLAN, and whose agent uses a tagged one.

use std::time::Duration;

use scenarios::{Lab, LabConfig, NucConfig, RackConfig};

use crate::gate;

const VLAN: u16 = 7;
/// Timeout for a boot and the erasure of a small disk, possibly in parallel with other tests.
const WORK: Duration = Duration::from_secs(300);
const TEMPLATE: &str = "version: \"0.1\"\n\
    name: wipe\n\
    global_timeout: 600\n\
    tasks:\n\
    - name: wipe\n\
    \x20 worker: \"{{.device_1}}\"\n\
    \x20 actions:\n\
    \x20 - name: wipe\n\
    \x20   image: quay.io/tinkerbell/actions/disk-wipe:latest\n\
    \x20   timeout: 300\n\
    \x20   environment: {BLOCK_DEVICE: /dev/vda}\n";

#[test]
fn an_agent_works_in_its_vlan() {
    let nuc = NucConfig { vlan: Some(VLAN), disk_bytes: 16 << 20, ..NucConfig::uefi() };
    let rack = RackConfig::new("boot-vlan").nuc(nuc);
    let lab = Lab::start(LabConfig::new(rack)).unwrap();
    let template = lab.file("wipe.yaml", TEMPLATE).unwrap();
    lab.tinbox(&["template", "create", "--file", template.to_str().unwrap()]).unwrap();
    lab.push_nuc(1, "ssh-ed25519 AAAA scenario", "#cloud-config\n").unwrap();
    let _place = gate::enter();
    let workflow = lab.create_workflow("wipe", 1).unwrap();
    lab.wait_success(&workflow, WORK).unwrap();

    let traffic = lab.rack.nuc(1).vlan_traffic().unwrap();
    // DHCP, a connection and the report of an action: far more than a dozen packets.
    assert!(traffic.tagged > 12, "{traffic:?}");
    assert_eq!(traffic.bare_since, 0, "the agent spoke in the native VLAN: {traffic:?}");
    lab.rack.succeed();
}
