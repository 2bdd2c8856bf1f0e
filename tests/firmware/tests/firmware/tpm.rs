//! The keys of a box are sealed to the TPM of its board. After a move of the disk to another board,
//! the owner's passphrase restores them. The TPMs are swtpm's.

use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;

use firmware::owner::{self, Owner};
use firmware::steps::CLAIM;
use firmware::{FIRST_LINE, PATIENCE, STARTING, run};
use image::disk::Part;
use qemu::{Board, Bus, Drive, Mark, Nic, Rack, RackConfig, Segment, poll};
use stdx::MacAddr;

use super::made;

const MAC: MacAddr = MacAddr([0x52, 0x54, 0, 0x77, 0x7b, 0x14]);
const SEALED: &str = "the keys of this box are sealed to its TPM";
const MACHINE: &str = "apiVersion: tinkerbell.org/v1alpha1\n\
    kind: Hardware\n\
    metadata: {name: nuc1}\n\
    spec:\n\
    \x20 interfaces:\n\
    \x20 - dhcp: {mac: \"52:54:00:77:00:01\"}\n";

fn start(rack: &Rack, disk: &Path, tpm: &Path) -> Board {
    let cable = (Segment::Near, Nic::E1000e, MAC);
    rack.add_board(&Drive::new(disk, Bus::Nvme).with_tpm(tpm), cable).unwrap()
}

fn off(mut board: Board) {
    board.press_power().unwrap();
    board.wait_off(PATIENCE).unwrap();
}

/// Files in the folder of the box on its state volume.
fn files(disk: &Path) -> String {
    let volume = format!("{}?offset={}", disk.display(), Part::State.offset());
    run(Command::new("debugfs").args(["-R", "ls -p /tinbox", &volume])).unwrap()
}

fn listed(owner: &Owner<'_>) {
    let list = || run(owner.tinbox().args(["hardware", "list"])).ok();
    let said = poll("the box to answer", PATIENCE, list).unwrap();
    assert!(said.contains("nuc1"), "{said}");
}

#[test]
fn a_disk_opens_on_its_own_board_and_on_another_by_the_passphrase_alone() {
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("disk");
    made(folder.path()).copy(&disk).unwrap();
    let [own, other] = ["own", "other"].map(|name| folder.path().join(name));
    let rack = Rack::build(RackConfig::new("tpm-box")).unwrap();
    let host = owner::host(&rack, Ipv4Addr::new(10, 9, 9, 9));

    let board = start(&rack, &disk, &own);
    let serial = board.serial();
    let claim = serial.wait_for_whole(Mark::START, CLAIM, PATIENCE).unwrap().0.text;
    let owner = Owner::claims(&host, &owner::address(&claim), serial, folder.path());
    serial.wait_for(SEALED, PATIENCE).unwrap();
    let file = folder.path().join("nuc1.yaml");
    fs::write(&file, MACHINE).unwrap();
    run(owner.tinbox().args(["hardware", "push", "--file"]).arg(&file)).unwrap();
    off(board);
    let found = files(&disk);
    assert!(!found.contains("/sealing.key/"), "the key lies in the open: {found}");
    assert!(found.contains("/sealing.key.tpm/") && found.contains("/keys.recovery/"), "{found}");

    let board = start(&rack, &disk, &own);
    board.serial().wait_for(FIRST_LINE, PATIENCE).unwrap();
    listed(&owner);
    off(board);

    let board = start(&rack, &disk, &other);
    let serial = board.serial();
    let closed = "cannot unseal the key sealing.key: log in .* the key is sealed to another TPM";
    let (_, mark) = serial.wait_for_after(Mark::START, closed, PATIENCE).unwrap();
    let refused = || run(owner.tinbox().args(["hardware", "list"])).err();
    poll("the box to refuse", PATIENCE, refused).unwrap();
    let page = || run(&mut owner.curl("/login")).ok();
    poll("the page to answer", PATIENCE, page).unwrap();
    owner.log_in();
    let (_, mark) = serial.wait_for_after(mark, STARTING, PATIENCE).unwrap();
    serial.wait_for_after(mark, FIRST_LINE, PATIENCE).unwrap();
    listed(&owner);
    poll("the page to answer", PATIENCE, page).unwrap();
    owner.log_in();
    serial.wait_for_after(mark, SEALED, PATIENCE).unwrap();
    off(board);
    assert!(!files(&disk).contains("/sealing.key/"), "the key lies in the open");
    rack.succeed();
}
