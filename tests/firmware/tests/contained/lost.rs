//! A STATE that does not mount. It is restored from the copy of its superblock. If that fails, the
//! box serves no machine and has no owner, until a factory reset is requested.

use firmware::owner::{Owner, address};
use firmware::steps::CLAIM;
use firmware::{FIRST_LINE, PATIENCE, boot_volume, run, state_volume};
use qemu::{Mark, poll};

use super::Lab;

/// A network that the box does not serve while its state is missing.
const BOX_TOML: &str = "[[network]]\n\
    interface = \"eth0\"\n\
    address = \"10.77.0.9/24\"\n\
    mode = \"reserved\"\n";
const LOST: &str = "tinbox: safe mode, because its state volume cannot be used: cannot mount";
/// Ports of DHCP, TFTP and network time.
const SERVED: [&str; 3] = [":67 ", ":69 ", ":123 "];

#[test]
fn a_damaged_state_is_mended_or_waits_for_a_factory_reset() {
    let lab = Lab::new("lost");
    let (place, disk) = (lab.place("box", 0x66), lab.disk("disk"));
    let machine = place.start(&disk).unwrap();
    let line = machine.serial().wait_for_whole(Mark::START, CLAIM, PATIENCE).unwrap().0.text;
    let owner = Owner::claims(&lab.owner, &address(&line), machine.serial(), lab.folder());
    machine.cut_power().unwrap();

    state_volume::lose_superblock(&disk).unwrap();
    let machine = place.start(&disk).unwrap();
    let mended = "the first block of /state was damaged .*restored from its copy";
    machine.serial().wait_for(mended, PATIENCE).unwrap();
    machine.serial().wait_for(FIRST_LINE, PATIENCE).unwrap();
    let list = || run(owner.tinbox().args(["hardware", "list"])).ok();
    poll("the box to know its owner", PATIENCE, list).unwrap();
    machine.cut_power().unwrap();

    state_volume::lose(&disk).unwrap();
    boot_volume::put(&disk, "box.toml", BOX_TOML.as_bytes()).unwrap();
    let before = state_volume::content(&disk).unwrap();
    let machine = place.start(&disk).unwrap();
    let serial = machine.serial();
    let (_, mark) = serial.wait_for_after(Mark::START, LOST, PATIENCE).unwrap();
    // The order of the two lines is not defined.
    serial.wait_for_after(mark, FIRST_LINE, PATIENCE).unwrap();
    serial.wait_for_after(mark, "problem: This box cannot read its data", PATIENCE).unwrap();
    let page = format!("https://{}/S", address(&line));
    let shown = || run(lab.owner.command("curl").args(["-ksS", &page])).ok();
    let shown = poll("the box to show its page", PATIENCE, shown).unwrap();
    assert!(shown.contains("so its owner is unknown") && !shown.contains("name=\"code\""));
    let said = owner.refused(&["hardware", "list"]);
    assert!(said.contains("certificate"), "the box is taken for the owner's: {said}");
    let sockets = run(machine.network_command("ss").unwrap().args(["-Hlun"])).unwrap();
    assert!(SERVED.iter().all(|port| !sockets.contains(port)), "{sockets}");
    let claims = serial.lines().into_iter().filter(|line| line.text.contains("claim this box"));
    assert_eq!(claims.count(), 0);
    machine.cut_power().unwrap();
    let after = state_volume::content(&disk).unwrap();
    assert!(after == before, "something was written to it");

    boot_volume::put(&disk, "reset.txt", b"factory\r\n").unwrap();
    let mut machine = place.start(&disk).unwrap();
    let serial = machine.serial();
    let (_, mark) = serial.wait_for_after(Mark::START, "/state is made anew", PATIENCE).unwrap();
    let erased = "factory reset: everything of the owner is erased";
    let (_, mark) = serial.wait_for_after(mark, erased, PATIENCE).unwrap();
    serial.wait_for_whole(mark, CLAIM, PATIENCE).unwrap();
    let lines = serial.lines();
    assert!(lines.iter().all(|line| !line.text.contains("safe mode")), "{lines:?}");
    place.devices().press_power().unwrap();
    machine.wait_off().unwrap();
    state_volume::check(&disk, lab.folder()).unwrap();
    assert!(boot_volume::read(&disk, "reset.txt").is_err());
    lab.succeed();
}
