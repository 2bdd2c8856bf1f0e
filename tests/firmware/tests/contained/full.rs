//! A full STATE file system, and the box after space is free again.

use std::fs;

use firmware::contained::Contained;
use firmware::owner::{Owner, address};
use firmware::steps::{CLAIM, grubenv};
use firmware::{FIRST_LINE, PATIENCE, run};
use qemu::{Mark, poll};

use super::Lab;

/// Size of an object in bytes.
const BYTES: usize = 256 * 1024;
/// Maximum number of small changes until one does not fit.
const CHANGES: usize = 40;

#[test]
fn a_box_whose_disk_was_full_goes_on_when_there_is_room() {
    let lab = Lab::new("full");
    let (place, disk) = (lab.place("box", 0x64), lab.disk("disk"));
    let machine = place.start(&disk).unwrap();
    let line = machine.serial().wait_for_whole(Mark::START, CLAIM, PATIENCE).unwrap().0.text;
    let owner = Owner::claims(&lab.owner, &address(&line), machine.serial(), lab.folder());
    let push = |name: &str, note: usize| {
        let file = lab.folder().join("machine.yaml");
        let text = format!(
            "apiVersion: tinkerbell.org/v1alpha1\n\
             kind: Hardware\n\
             metadata: {{name: {name}, annotations: {{note: \"{note}\"}}}}\n\
             spec: {{userData: {}}}\n",
            "x".repeat(BYTES)
        );
        fs::write(&file, text).unwrap();
        run(owner.tinbox().args(["hardware", "push", "--file"]).arg(&file))
    };
    ["first", "second"].into_iter().for_each(|name| drop(push(name, 0).unwrap()));
    let fill = |name: &str| {
        let filler = machine.root().join("state").join(name).display().to_string();
        let state = machine.root().join("state");
        let mut df = machine.command("df").unwrap();
        let free = run(df.args(["--block-size=1M", "--output=avail"]).arg(&state)).unwrap();
        let free: u64 = free.lines().nth(1).unwrap().trim().parse().unwrap();
        // Allocates most of the space without writing it.
        let most = format!("{}M", free.saturating_sub(16).max(1));
        run(machine.command("fallocate").unwrap().args(["-l", &most, &filler])).unwrap();
        let mut fill = machine.command("dd").unwrap();
        fill.args([
            "if=/dev/zero",
            "bs=64k",
            "oflag=append",
            "conv=notrunc",
            &format!("of={filler}"),
        ]);
        let full = run(&mut fill).unwrap_err().to_string();
        assert!(full.contains("No space left"), "{full}");
        filler
    };
    let filler = fill("filler");
    let refused = push("third", 0).expect_err("nothing new is taken").to_string();
    assert!(refused.contains("the box's disk is nearly full"), "{refused}");
    let delete = owner.tinbox().args(["hardware", "delete", "second", "--yes"]).output();
    let delete = delete.unwrap();
    assert!(delete.status.success(), "the reserve is there for it: {delete:?}");

    // Fills the reserved space too.
    let rest = fill("rest");
    let refused = (1..CHANGES).find_map(|note| push("first", note).err());
    let refused = refused.expect("something does not fit").to_string();
    assert!(refused.contains("No space left"), "{refused}");
    let stored = || run(owner.tinbox().args(["hardware", "list"]));
    assert!(stored().unwrap().contains("first"), "what is stored can be read");

    run(machine.command("rm").unwrap().args([&filler, &rest])).unwrap();
    poll("the box to store again", PATIENCE, || push("third", 0).ok()).unwrap();
    let listed = stored().unwrap();
    assert!(listed.contains("first ") && !listed.contains("second "), "{listed}");
    drop(machine);
    lab.succeed();
}

/// Fills STATE to its last byte, with files of a new name.
fn fill(machine: &Contained, name: &str) {
    // Freed blocks may become available only after a sync.
    run(&mut machine.command("sync").unwrap()).unwrap();
    for block in ["64k", "4k", "1"] {
        let file = machine.root().join(format!("state/{name}-{block}")).display().to_string();
        let mut fill = machine.command("dd").unwrap();
        let full = run(fill.args(["if=/dev/zero", &format!("bs={block}"), &format!("of={file}")]));
        assert!(full.unwrap_err().to_string().contains("No space left"));
        run(&mut machine.command("sync").unwrap()).unwrap();
    }
}

#[test]
fn a_box_whose_disk_is_full_takes_settings_and_is_reset_by_every_way() {
    let lab = Lab::new("remedies");
    let (place, disk) = (lab.place("box", 0x65), lab.disk("disk"));
    let machine = place.start(&disk).unwrap();
    let serial = machine.serial();
    let line = serial.wait_for_whole(Mark::START, CLAIM, PATIENCE).unwrap().0.text;
    let owner = Owner::claims(&lab.owner, &address(&line), serial, lab.folder());
    let set = |zone: &str| {
        let zone = format!("time.zone={zone}");
        run(owner.tinbox().args(["box", "settings", "set", &zone])).unwrap();
    };
    set("Europe/Paris");
    fill(&machine, "first");
    set("Europe/Berlin");
    // The box has freed its reserve file by now.
    fill(&machine, "second");
    set("Europe/Rome");
    fill(&machine, "third");
    machine.cut_power().unwrap();
    let machine = place.start(&disk).unwrap();
    let serial = machine.serial();
    serial.wait_for(FIRST_LINE, PATIENCE).unwrap();
    // The box's certificate contains its address only after the network is up, which may be later.
    let reset = || run(owner.tinbox().args(["box", "reset", "--level", "factory", "--yes"])).ok();
    poll("the box to take the reset", PATIENCE, reset).unwrap();
    let erased = "factory reset: everything of the owner is erased";
    let (_, mark) = serial.wait_for_after(Mark::START, erased, PATIENCE).unwrap();
    serial.wait_for_whole(mark, CLAIM, PATIENCE).unwrap();

    // The reserve file is gone and the disk is full: before a reset in the boot menu, no user can
    // free space.
    fill(&machine, "fourth");
    run(machine.command("rm").unwrap().arg(machine.root().join("state/small-files.reserve")))
        .unwrap();
    fill(&machine, "fifth");
    machine.cut_power().unwrap();
    let machine = place.start_by_menu(&disk, Some("factory")).unwrap();
    let (_, mark) = machine.serial().wait_for_after(Mark::START, erased, PATIENCE).unwrap();
    machine.serial().wait_for_whole(mark, CLAIM, PATIENCE).unwrap();
    machine.cut_power().unwrap();
    let variables = grubenv(&disk);
    assert!(!variables.contains("RESET=") && !variables.contains("ASKED="), "{variables}");
    lab.succeed();
}
