//! A box is gone with its disk, and a fresh one becomes it.

use std::fs;
use std::net::Ipv4Addr;

use firmware::boot_volume;
use firmware::owner::{self, Owner, told};
use firmware::{FIRST_LINE, PATIENCE, STARTING, run};
use qemu::{Bus, Drive, Mark, Nic, Rack, RackConfig, Segment, poll};
use stdx::MacAddr;

use super::made;

const GONE: MacAddr = MacAddr([0x52, 0x54, 0, 0x77, 0xba, 1]);
const SPARE: MacAddr = MacAddr([0x52, 0x54, 0, 0x77, 0xba, 2]);
const BOX: &str = "10.77.0.9";
/// As its owner wrote it.
const BOX_TOML: &str = "name = \"cellar\"\r\n\
    [[management]]\r\n\
    interface = \"eth0\"\r\n\
    address = \"10.77.0.9/24\"\r\n";
const MACHINE: &str = "apiVersion: tinkerbell.org/v1alpha1\n\
    kind: Hardware\n\
    metadata: {name: nuc1}\n\
    spec:\n\
    \x20 interfaces:\n\
    \x20 - dhcp: {mac: \"52:54:00:77:00:01\"}\n";
/// Of the spare one alone, which has no address yet.
const CLAIM: &str = "claim this box at HTTPS://169[0-9.]+/S/[0-9A-Z]{6} with code ";

#[test]
fn a_fresh_box_becomes_the_one_that_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let image = made(folder.path());
    let rack = Rack::build(RackConfig::new("spare-box")).unwrap();
    let host = owner::host(&rack, Ipv4Addr::new(10, 77, 0, 250));

    let gone = at("gone");
    image.copy(&gone).unwrap();
    boot_volume::put(&gone, "box.toml", BOX_TOML.as_bytes()).unwrap();
    let drive = Drive::new(&gone, Bus::Ahci);
    let board = rack.add_board(&drive, (Segment::Near, Nic::E1000e, GONE)).unwrap();
    board.serial().wait_for(FIRST_LINE, PATIENCE).unwrap();
    let owner = Owner::claims(&host, BOX, board.serial(), folder.path());
    fs::write(at("nuc1.yaml"), MACHINE).unwrap();
    run(owner.tinbox().args(["hardware", "push", "--file"]).arg(at("nuc1.yaml"))).unwrap();
    for (name, words) in [("words", "battery staple"), ("other", "battery stable")] {
        fs::write(at(name), words).unwrap();
    }
    let backup = || {
        let mut backup = owner.tinbox();
        backup.arg("backup");
        backup
    };
    let mut create = backup();
    create.args(["create", "--passphrase-file"]).arg(at("words"));
    run(create.arg("-o").arg(at("cellar.boxbak"))).unwrap();
    drop(board);
    fs::remove_file(gone).unwrap();

    // Another machine, with another disk and another card.
    let spare = at("spare");
    image.copy(&spare).unwrap();
    let drive = Drive::new(&spare, Bus::Nvme);
    let board = rack.add_board(&drive, (Segment::Near, Nic::Virtio, SPARE)).unwrap();
    let serial = board.serial();
    let (line, mark) = serial.wait_for_whole(Mark::START, CLAIM, PATIENCE).unwrap();
    let address = owner::address(&line.text);
    let pin = told(serial, Mark::START, "certificate pin ");
    fs::write(at("code"), told(serial, Mark::START, CLAIM)).unwrap();
    let restore = |words: &str| {
        let mut restore = backup();
        restore.arg("restore").arg(at("cellar.boxbak")).args(["--to", &address, "--pin", &pin]);
        restore.arg("--code-file").arg(at("code")).arg("--passphrase-file").arg(at(words));
        run(&mut restore)
    };
    let said = restore("other").expect_err("a wrong passphrase").to_string();
    assert!(said.contains("That is not the passphrase of this backup"), "{said}");
    restore("words").unwrap();

    let (_, mark) = serial.wait_for_after(mark, STARTING, PATIENCE).unwrap();
    serial.wait_for_after(mark, FIRST_LINE, PATIENCE).unwrap();
    // With what its owner had of the first: certificate, credentials and address are the same.
    let list = || run(owner.tinbox().args(["hardware", "list"])).ok();
    let listed = poll("the owner's words to be known", PATIENCE, list).unwrap();
    assert!(listed.contains("nuc1"), "{listed}");
    owner.log_in();
    let page = run(&mut owner.curl("/box")).unwrap();
    assert!(page.contains("cellar"), "{page}");
    drop(board);
    assert_eq!(boot_volume::read(&spare, "box.toml").unwrap(), BOX_TOML);
    rack.succeed();
}
