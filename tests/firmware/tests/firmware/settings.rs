//! Settings from the command line: written on the boot volume's FAT, stored with their history, and
//! in force after a power cut. The same steps on a contained box, without FAT, are in
//! `tests/contained`.

use std::net::Ipv4Addr;

use firmware::machines::Emulated;
use firmware::owner;
use firmware::steps::settings;
use qemu::{Bus, Nic, Rack, RackConfig};
use stdx::MacAddr;

use super::made;

const MAC: MacAddr = MacAddr([0x52, 0x54, 0, 0x77, 0x5e, 0x77]);

#[test]
fn what_is_set_survives_a_start_and_can_be_taken_back() {
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("disk");
    made(folder.path()).copy(&disk).unwrap();
    let rack = Rack::build(RackConfig::new("set-box")).unwrap();
    let host = owner::host(&rack, Ipv4Addr::new(10, 9, 9, 9));
    let machine = Emulated { rack: &rack, bus: Bus::Nvme, nic: (Nic::E1000e, MAC) };
    settings::survive_a_power_cut(&machine, &disk, &host, folder.path());
    rack.succeed();
}
