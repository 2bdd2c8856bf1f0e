//! Restart, power off and power cuts, and their effect on the boot loader's variables.

use std::fs;
use std::path::Path;
use std::process::Command;

use firmware::contained::{Contained, Place};
use firmware::owner::{Owner, address};
use firmware::steps::{CLAIM, grubenv};
use firmware::{FIRST_LINE, PATIENCE, STARTING, boot_volume, run};
use image::disk::Part;
use qemu::{Mark, poll};

use super::Lab;

/// Number of power cuts, each right after an answer of the box.
const CUTS: usize = 4;
/// Maximum number of cuts until one loses the unsynced file. A cut loses nothing if the kernel has
/// written the file before, by itself or because another test runs `sync`.
const ATTEMPTS: usize = 12;
/// Characters of a UUID.
const UUID: usize = 36;

/// State in the superblock of `part`: `clean` after an unmount.
fn state(disk: &Path, part: Part) -> String {
    let volume = format!("{}?offset={}", disk.display(), part.offset());
    let told = run(Command::new("dumpe2fs").args(["-h", &volume])).unwrap();
    let line = told.lines().find_map(|line| line.strip_prefix("Filesystem state:"));
    let journal = told.contains("needs_recovery");
    format!("{}{}", line.expect(&told).trim(), if journal { ", to be recovered" } else { "" })
}

#[test]
fn a_box_restarts_and_switches_itself_off() {
    let lab = Lab::new("power");
    let (place, disk) = (lab.place("box", 0x61), lab.disk("disk"));
    let mut machine = place.start(&disk).unwrap();
    let serial = machine.serial();
    let (line, mark) = serial.wait_for_whole(Mark::START, CLAIM, PATIENCE).unwrap();
    let owner = Owner::claims(&lab.owner, &address(&line.text), serial, lab.folder());
    run(owner.tinbox().args(["box", "restart"])).unwrap();
    let (_, mark) = serial.wait_for_after(mark, STARTING, PATIENCE).unwrap();
    serial.wait_for_after(mark, FIRST_LINE, PATIENCE).unwrap();
    place.devices().press_power().unwrap();
    machine.wait_off().unwrap();
    assert_eq!([Part::State, Part::Cache].map(|part| state(&disk, part)), ["clean", "clean"]);
    let variables = grubenv(&disk);
    assert!(variables.contains("\nA_OK=1\nA_TRY=2\nB_OK=1\nB_TRY=0\n"), "{variables}");

    let mut machine = place.start(&disk).unwrap();
    let off = || run(owner.tinbox().args(["box", "poweroff", "--yes"])).ok();
    poll("the box to answer", PATIENCE, off).unwrap();
    machine.wait_off().unwrap();
    assert_eq!(state(&disk, Part::State), "clean");
    // A slot that was started three times and never marked as good is skipped.
    let machine = place.start(&disk).unwrap();
    let line = machine.serial().wait_for(STARTING, PATIENCE).unwrap();
    assert!(line.text.ends_with("starting slot b"), "{line:?}");
    machine.serial().wait_for("box-c061 .* slot B", PATIENCE).unwrap();
    drop(machine);
    lab.succeed();
}

/// Proves that a cut loses data: otherwise the tests after cuts would prove nothing.
#[test]
fn a_cut_loses_what_no_program_has_synced() {
    let lab = Lab::new("unsynced");
    let (place, disk) = (lab.place("box", 0x63), lab.disk("disk"));
    for attempt in 0..ATTEMPTS {
        let machine = started(&place, &disk);
        // Each attempt has files of its own: a file that an earlier attempt wrote may survive.
        let path = |name: &str| Path::new("state").join(format!("{name}-{attempt}"));
        let file = |name: &str| machine.root().join(path(name)).display().to_string();
        for (name, option) in [("synced", "conv=fsync"), ("unsynced", "conv=notrunc")] {
            let mut write = machine.command("dd").unwrap();
            write.args(["if=/proc/sys/kernel/random/uuid", option]);
            run(write.arg(format!("of={}", file(name)))).unwrap();
        }
        machine.cut_power().unwrap();

        let machine = started(&place, &disk);
        let file = |name: &str| machine.root().join(path(name));
        let read = |name: &str| run(machine.command("cat").unwrap().arg(file(name)));
        assert_eq!(read("synced").unwrap().trim().len(), UUID, "a synced file is lost");
        let is_lost = read("unsynced").map_or(true, |text| text.trim().len() != UUID);
        machine.cut_power().unwrap();
        if is_lost {
            return lab.succeed();
        }
    }
    panic!("a file that no program has synced was there after each of {ATTEMPTS} cuts");
}

fn started(place: &Place, disk: &Path) -> Contained {
    let machine = place.start(disk).unwrap();
    machine.serial().wait_for(FIRST_LINE, PATIENCE).unwrap();
    machine
}

#[test]
fn what_the_box_answered_is_there_after_a_power_cut() {
    let lab = Lab::new("cuts");
    let (place, disk) = (lab.place("box", 0x62), lab.disk("disk"));
    let mut machine = place.start(&disk).unwrap();
    let line = machine.serial().wait_for_whole(Mark::START, CLAIM, PATIENCE).unwrap().0.text;
    let owner = Owner::claims(&lab.owner, &address(&line), machine.serial(), lab.folder());
    for cut in 1..=CUTS {
        let file = lab.folder().join("machine.yaml");
        let text = format!(
            "apiVersion: tinkerbell.org/v1alpha1\n\
             kind: Hardware\n\
             metadata: {{name: nuc{cut}}}\n\
             spec:\n\
             \x20 interfaces:\n\
             \x20 - dhcp: {{mac: \"52:54:00:77:00:0{cut}\"}}\n"
        );
        fs::write(&file, text).unwrap();
        let mut push = owner.tinbox();
        push.args(["hardware", "push", "--file"]).arg(&file);
        let name = format!("name=cellar{cut}");
        let mut set = owner.tinbox();
        set.args(["box", "settings", "set", &name]);
        run(&mut push).unwrap();
        run(&mut set).unwrap();
        machine.cut_power().unwrap();
        assert_eq!(state(&disk, Part::State), "clean, to be recovered");
        let written = boot_volume::read(&disk, "box.toml").unwrap();
        assert_eq!(written, format!("name = \"cellar{cut}\"\n"));

        machine = place.start(&disk).unwrap();
        let list = || run(owner.tinbox().args(["hardware", "list"])).ok();
        let listed = poll("the box to answer", PATIENCE, list).unwrap();
        for known in 1..=cut {
            assert!(listed.contains(&format!("nuc{known}")), "after cut {cut}: {listed}");
        }
        machine.serial().wait_for(&format!("cellar{cut} "), PATIENCE).unwrap();
    }
    drop(machine);
    lab.succeed();
}
