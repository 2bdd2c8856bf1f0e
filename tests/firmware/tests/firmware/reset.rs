//! A claimed box starts once in safe mode, and is then reset to its factory state. The same steps
//! on a contained box are in `tests/contained`.

use std::net::Ipv4Addr;

use firmware::machines::Emulated;
use firmware::owner;
use firmware::steps::reset;
use qemu::{Bus, Nic, Rack, RackConfig};
use stdx::MacAddr;

use super::made;

const MAC: MacAddr = MacAddr([0x52, 0x54, 0, 0x77, 0x33, 0x44]);

#[test]
fn a_claimed_box_goes_back_for_one_start_and_then_to_its_claim() {
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("disk");
    made(folder.path()).copy(&disk).unwrap();
    let rack = Rack::build(RackConfig::new("reset-box")).unwrap();
    let host = owner::host(&rack, Ipv4Addr::new(10, 9, 9, 9));
    let machine = Emulated { rack: &rack, bus: Bus::Nvme, nic: (Nic::E1000e, MAC) };
    reset::safe_mode_then_factory(&machine, (&disk, "box-3344"), &host, folder.path());
    rack.succeed();
}
