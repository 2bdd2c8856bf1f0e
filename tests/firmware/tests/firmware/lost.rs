//! A flashed box whose STATE does not mount, with its own kernel and verified root. Its messages
//! and services, a power cut and a damaged superblock are tested in `tests/contained`.

use firmware::state_volume;
use firmware::{FIRST_LINE, PATIENCE, STARTING};
use image::disk::Part;
use qemu::{Board, Bus, Drive, Mark};

use super::{grubenv, made, set_grubenv, standing};

/// Variables as the menu leaves them when its factory reset is chosen.
const CHOSEN: &str = "ORDER=A B\nA_OK=1\nA_TRY=0\nB_OK=1\nB_TRY=0\nRESET=factory\n";

#[test]
fn a_box_whose_state_does_not_mount_says_so_and_begins_anew_when_the_menu_asks() {
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("disk");
    made(folder.path()).copy(&disk).unwrap();
    state_volume::lose(&disk).unwrap();
    let before = state_volume::content(&disk).unwrap();
    let board = Board::start(folder.path(), &Drive::new(&disk, Bus::Nvme)).unwrap();
    let serial = board.serial();
    let lost = "safe mode, because its state volume cannot be used: cannot mount /dev/nvme0n1p4";
    let (_, mark) = serial.wait_for_after(Mark::START, lost, PATIENCE).unwrap();
    // The order of the two lines is not defined.
    serial.wait_for_after(mark, FIRST_LINE, PATIENCE).unwrap();
    serial.wait_for_after(mark, "problem: This box cannot read its data", PATIENCE).unwrap();
    board.cut_power().unwrap();
    assert!(state_volume::content(&disk).unwrap() == before, "something was written to it");

    set_grubenv(&disk, CHOSEN);
    let mut board = Board::start(folder.path(), &Drive::new(&disk, Bus::Nvme)).unwrap();
    let serial = board.serial();
    let (_, mark) = serial.wait_for_after(Mark::START, STARTING, PATIENCE).unwrap();
    let (_, mark) = serial.wait_for_after(mark, "/state is made anew", PATIENCE).unwrap();
    let erased = "factory reset: everything of the owner is erased";
    let (_, mark) = serial.wait_for_after(mark, erased, PATIENCE).unwrap();
    serial.wait_for_after(mark, FIRST_LINE, PATIENCE).unwrap();
    assert!(serial.lines().iter().all(|line| !line.text.contains("safe mode")));
    board.press_power().unwrap();
    board.wait_off(PATIENCE).unwrap();
    assert_eq!(standing(&disk, Part::State), "clean");
    state_volume::check(&disk, folder.path()).unwrap();
    assert!(!grubenv(&disk).contains("RESET="), "{}", grubenv(&disk));
}
