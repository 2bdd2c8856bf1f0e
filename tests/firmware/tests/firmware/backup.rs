//! A box is lost with its disk, and a fresh box is restored from its backup. The same steps on
//! contained boxes are in `tests/contained`.

use std::net::Ipv4Addr;

use firmware::machines::Emulated;
use firmware::owner;
use firmware::steps::backup;
use qemu::{Bus, Nic, Rack, RackConfig};
use stdx::MacAddr;

use super::made;

const GONE: MacAddr = MacAddr([0x52, 0x54, 0, 0x77, 0xba, 1]);
const SPARE: MacAddr = MacAddr([0x52, 0x54, 0, 0x77, 0xba, 2]);

#[test]
fn a_fresh_box_becomes_the_one_that_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let image = made(folder.path());
    let rack = Rack::build(RackConfig::new("spare-box")).unwrap();
    let host = owner::host(&rack, Ipv4Addr::new(10, 77, 0, 250));
    let gone = Emulated { rack: &rack, bus: Bus::Ahci, nic: (Nic::E1000e, GONE) };
    // Another machine, with another disk and another network interface.
    let spare = Emulated { rack: &rack, bus: Bus::Nvme, nic: (Nic::Virtio, SPARE) };
    backup::a_fresh_box_becomes_the_lost_one((&gone, &spare), &image, &host, folder.path());
    rack.succeed();
}
