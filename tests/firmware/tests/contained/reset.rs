//! A claimed box starts once in safe mode, and is then reset to its factory state.

use firmware::steps::{CLAIM, grubenv, reset};
use firmware::{FIRST_LINE, PATIENCE, boot_volume};
use qemu::Mark;

use super::Lab;

#[test]
fn a_claimed_box_goes_back_for_one_start_and_then_to_its_claim() {
    let lab = Lab::new("reset");
    let disk = lab.disk("disk");
    reset::safe_mode_then_factory(
        &lab.place("box", 0x44),
        (&disk, "box-c044"),
        &lab.owner,
        lab.folder(),
    );
    lab.succeed();
}

#[test]
fn the_boot_menu_and_a_file_ask_for_a_reset_too() {
    let lab = Lab::new("menu");
    let (place, disk) = (lab.place("box", 0x45), lab.disk("disk"));
    boot_volume::put(&disk, "box.toml", b"name = \"cellar\"\n").unwrap();
    let machine = place.start_by_menu(&disk, Some("safe")).unwrap();
    let why = "tinbox: safe mode, because it was chosen in the boot menu";
    let (_, mark) = machine.serial().wait_for_after(Mark::START, why, PATIENCE).unwrap();
    machine.serial().wait_for_after(mark, FIRST_LINE, PATIENCE).unwrap();
    machine.cut_power().unwrap();
    assert!(!grubenv(&disk).contains("RESET="), "{}", grubenv(&disk));
    assert!(boot_volume::read(&disk, "box.toml").is_ok(), "safe mode keeps the settings");

    // The file as an editor on Windows saves it: with a byte order mark.
    boot_volume::put(&disk, "reset.txt", b"\xef\xbb\xbfFactory\r\n").unwrap();
    let machine = place.start(&disk).unwrap();
    let why = "factory reset, because the file \"reset\" on the volume TINBOX requested it";
    let (_, mark) = machine.serial().wait_for_after(Mark::START, why, PATIENCE).unwrap();
    let erased = "factory reset: everything of the owner is erased";
    let (_, mark) = machine.serial().wait_for_after(mark, erased, PATIENCE).unwrap();
    machine.serial().wait_for_whole(mark, CLAIM, PATIENCE).unwrap();
    machine.cut_power().unwrap();
    for name in ["reset.txt", "box.toml"] {
        assert!(boot_volume::read(&disk, name).is_err(), "{name} is there still");
    }
    let machine = place.start(&disk).unwrap();
    machine.serial().wait_for(FIRST_LINE, PATIENCE).unwrap();
    let lines = machine.serial().lines();
    assert!(lines.iter().all(|line| !line.text.contains("reset")), "{lines:?}");
    drop(machine);
    lab.succeed();
}
