//! Steps: a box is lost with its disk, and a fresh box is restored from its backup.

use std::fs;
use std::path::Path;

use qemu::{Host, Mark, poll};

use super::CLAIM;
use crate::machines::{Machine, RunningBox as _};
use crate::owner::{self, Owner, told};
use crate::{FIRST_LINE, Image, PATIENCE, STARTING, boot_volume, run};

const BOX: &str = "10.77.0.9";
/// Configuration with the line ends of an editor on Windows.
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

/// Backs up the box on `gone` and deletes its disk. Restores the backup on another box on `spare`.
/// Both disks are copies of `image`. `host` is the owner's machine, in 10.77.0.0/24.
pub fn a_fresh_box_becomes_the_lost_one(
    (gone, spare): (&impl Machine, &impl Machine),
    image: &Image,
    host: &Host,
    folder: &Path,
) {
    let at = |name: &str| folder.join(name);
    let owner = backed_up(gone, image, host, folder);

    // Another machine, with another disk and another network interface.
    let disk = at("spare-disk");
    image.copy(&disk).unwrap();
    let running = spare.switch_on(&disk).unwrap();
    let serial = running.serial();
    let claim = format!("{CLAIM}[0-9A-Z]{{6}} with code ");
    let (line, mark) = serial.wait_for_whole(Mark::START, &claim, PATIENCE).unwrap();
    let address = owner::address(&line.text);
    assert_ne!(address, BOX, "the box is restored already");
    let pin = told(serial, Mark::START, "certificate pin ");
    fs::write(at("code"), told(serial, Mark::START, &claim)).unwrap();
    let restore = |words: &str| {
        let mut restore = owner.tinbox();
        restore.args(["backup", "restore"]).arg(at("cellar.boxbak"));
        restore.args(["--to", &address, "--pin", &pin]);
        restore.arg("--code-file").arg(at("code")).arg("--passphrase-file").arg(at(words));
        run(&mut restore)
    };
    let said = restore("other").expect_err("a wrong passphrase").to_string();
    assert!(said.contains("Wrong passphrase for this backup"), "{said}");
    restore("words").unwrap();

    let (_, mark) = serial.wait_for_after(mark, STARTING, PATIENCE).unwrap();
    serial.wait_for_after(mark, FIRST_LINE, PATIENCE).unwrap();
    // The owner's data of the first box is valid: certificate, credentials and address are the
    // same.
    let list = || run(owner.tinbox().args(["hardware", "list"])).ok();
    let listed = poll("the owner's credentials to be known", PATIENCE, list).unwrap();
    assert!(listed.contains("nuc1"), "{listed}");
    owner.log_in();
    let page = run(&mut owner.curl("/box")).unwrap();
    assert!(page.contains("cellar"), "{page}");
    running.cut().unwrap();
    assert_eq!(boot_volume::read(&disk, "box.toml").unwrap(), BOX_TOML);
}

/// Claims the first box and backs it up to `cellar.boxbak` in `folder`; then its disk is lost.
fn backed_up<'a>(gone: &impl Machine, image: &Image, host: &'a Host, folder: &Path) -> Owner<'a> {
    let at = |name: &str| folder.join(name);
    let disk = at("gone-disk");
    image.copy(&disk).unwrap();
    boot_volume::put(&disk, "box.toml", BOX_TOML.as_bytes()).unwrap();
    let running = gone.switch_on(&disk).unwrap();
    running.serial().wait_for(FIRST_LINE, PATIENCE).unwrap();
    let owner = Owner::claims(host, BOX, running.serial(), folder);
    fs::write(at("nuc1.yaml"), MACHINE).unwrap();
    run(owner.tinbox().args(["hardware", "push", "--file"]).arg(at("nuc1.yaml"))).unwrap();
    for (name, words) in [("words", "battery staple"), ("other", "battery stable")] {
        fs::write(at(name), words).unwrap();
    }
    let mut create = owner.tinbox();
    create.args(["backup", "create", "--passphrase-file"]).arg(at("words"));
    run(create.arg("-o").arg(at("cellar.boxbak"))).unwrap();
    running.cut().unwrap();
    fs::remove_file(disk).unwrap();
    owner
}
