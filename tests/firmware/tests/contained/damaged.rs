//! A box whose store or keys were damaged while it was off.

use firmware::contained::Contained;
use firmware::owner::{Owner, address};
use firmware::steps::CLAIM;
use firmware::{FIRST_LINE, PATIENCE, STARTING, run};
use qemu::{Mark, poll};

use super::Lab;

const MACHINE: &str = "apiVersion: tinkerbell.org/v1alpha1\n\
    kind: Hardware\n\
    metadata: {name: nuc1}\n";
/// Small files that a box needs for its start.
const KEYS: [&str; 8] = [
    "sealing.key",
    "boot-token.key",
    "tokens",
    "owner.json",
    "pki/ca.key",
    "pki/ca.crt",
    "pki/server.key",
    "pki/serviceaccount.key",
];

/// Overwrites the beginning of a file of the box, on its disk.
fn damage(machine: &Contained, name: &str) {
    let file = machine.root().join("state/tinbox").join(name).display().to_string();
    let mut dd = machine.command("dd").unwrap();
    let of = format!("of={file}");
    run(dd.args(["if=/dev/zero", "bs=4k", "count=8", "conv=notrunc,fsync", &of])).unwrap();
}

#[test]
fn a_box_starts_whatever_file_is_damaged_and_has_a_way_back() {
    let lab = Lab::new("damaged");
    let (place, disk) = (lab.place("box", 0x65), lab.disk("disk"));
    let machine = place.start(&disk).unwrap();
    let line = machine.serial().wait_for_whole(Mark::START, CLAIM, PATIENCE).unwrap().0.text;
    let owner = Owner::claims(&lab.owner, &address(&line), machine.serial(), lab.folder());
    let file = lab.folder().join("nuc1.yaml");
    std::fs::write(&file, MACHINE).unwrap();
    run(owner.tinbox().args(["hardware", "push", "--file"]).arg(&file)).unwrap();
    let kept = run(owner.tinbox().args(["backup", "keep"])).unwrap();
    assert!(kept.contains("1 machine"), "{kept}");

    // Keys: their second copies are used.
    machine.serial().wait_for(FIRST_LINE, PATIENCE).unwrap();
    KEYS.iter().for_each(|name| damage(&machine, name));
    machine.cut_power().unwrap();
    let machine = place.start(&disk).unwrap();
    machine.serial().wait_for(FIRST_LINE, PATIENCE).unwrap();
    let known = || run(owner.tinbox().args(["hardware", "list"])).ok();
    let listed = poll("the box to know its machines", PATIENCE, known).unwrap();
    assert!(listed.contains("nuc1"), "{listed}");
    owner.log_in();
    let page = run(&mut owner.curl("/")).unwrap();
    for name in KEYS {
        let said = format!("The file {name} is damaged; its second copy is used");
        assert!(page.contains(&said), "{name}: {page}");
    }

    // The store is damaged: the box reports it, serves no object, and offers its own backups.
    damage(&machine, "objects.redb");
    machine.cut_power().unwrap();
    let machine = place.start(&disk).unwrap();
    let (_, mark) = machine.serial().wait_for_after(Mark::START, FIRST_LINE, PATIENCE).unwrap();
    let list = || run(owner.tinbox().args(["backup", "list"])).ok();
    let kept = poll("the box to say what it kept", PATIENCE, list).unwrap();
    let refused = run(owner.tinbox().args(["hardware", "list"])).unwrap_err().to_string();
    assert!(refused.contains("the stored data of this box cannot be read"), "{refused}");
    owner.log_in();
    let page = run(&mut owner.curl("/")).unwrap();
    assert!(page.contains("The stored data of this box cannot be read"), "{page}");
    let name = kept.lines().nth(1).and_then(|line| line.split_whitespace().next()).unwrap();
    run(owner.tinbox().args(["backup", "restore", "--yes", "--kept", name])).unwrap();
    let (_, mark) = machine.serial().wait_for_after(mark, STARTING, PATIENCE).unwrap();
    machine.serial().wait_for_after(mark, FIRST_LINE, PATIENCE).unwrap();
    let listed = poll("the box to be as it was", PATIENCE, known).unwrap();
    assert!(listed.contains("nuc1"), "{listed}");
    drop(machine);
    lab.succeed();
}
