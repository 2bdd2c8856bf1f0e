//! What an owner sets from the command line is written on the boot volume's FAT, kept with its
//! history, and in force after a start.

use std::net::Ipv4Addr;
use std::process::Command;

use firmware::boot_volume;
use firmware::owner::{self, Owner};
use firmware::{FIRST_LINE, PATIENCE, run};
use qemu::{Bus, Drive, Mark, Nic, Rack, RackConfig, Segment, poll};
use stdx::MacAddr;

use super::made;

const MAC: MacAddr = MacAddr([0x52, 0x54, 0, 0x77, 0x5e, 0x77]);
const CLAIM: &str = "claim this box at HTTPS://[0-9.]+/S/";

#[test]
fn what_is_set_survives_a_start_and_can_be_taken_back() {
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("disk");
    made(folder.path()).copy(&disk).unwrap();
    let rack = Rack::build(RackConfig::new("set-box")).unwrap();
    let host = owner::host(&rack, Ipv4Addr::new(10, 9, 9, 9));
    let drive = Drive::new(&disk, Bus::Nvme);
    let board = rack.add_board(&drive, (Segment::Near, Nic::E1000e, MAC)).unwrap();
    let told = board.serial().wait_for_whole(Mark::START, CLAIM, PATIENCE).unwrap().0.text;
    let owner = Owner::claims(&host, &owner::address(&told), board.serial(), folder.path());
    let settings = |line: &[&str]| run(owner.tinbox().args(["box", "settings"]).args(line));
    assert_eq!(settings(&["get"]).unwrap().trim(), "", "nobody said anything yet");
    let mistakes =
        owner.refused(&["box", "settings", "set", "time.zone=Berlin", "bmc.poll_secs=0"]);
    assert!(mistakes.contains("line 2: bmc.poll_secs: 0 s is not between"), "{mistakes}");
    assert!(mistakes.contains("line 5: time.zone: \"Berlin\" is no time zone"), "{mistakes}");
    let keys = ["set", "name=attic", "time.zone=Europe/Berlin", "--note", "it moved"];
    settings(&keys).unwrap();
    settings(&["set", "bmc.poll_secs=60"]).unwrap();
    // The power goes.
    drop(board);
    let written = boot_volume::read(&disk, "box.toml").unwrap();
    let want = "name = \"attic\"\n\n[time]\nzone = \"Europe/Berlin\"\n\n[bmc]\npoll_secs = 60\n";
    assert_eq!(written, want);
    let names =
        run(Command::new("mdir").args(["-b", "-i", &boot_volume::of(&disk), "::"])).unwrap();
    assert!(!names.contains("::/box.1") && !names.contains("::/BOX.1"), "{names}");

    let board = rack.add_board(&drive, (Segment::Near, Nic::E1000e, MAC)).unwrap();
    board.serial().wait_for(FIRST_LINE, PATIENCE).unwrap();
    let history = || settings(&["history"]).ok();
    let history = poll("the box to answer", PATIENCE, history).unwrap();
    let lines: Vec<&str> = history.lines().collect();
    assert!(lines.len() == 3 && lines[1].contains("it moved"), "{history}");
    assert!(lines[2].contains("yes"), "{history}");
    assert_eq!(settings(&["get"]).unwrap(), want);
    let shown = settings(&["diff"]).unwrap();
    assert!(shown.contains("+poll_secs = 60"), "{shown}");
    settings(&["revert", "1"]).unwrap();
    // What is said beside it is that the box still does what it did.
    let now = settings(&["get"]).unwrap();
    assert!(!now.lines().any(|line| line == "poll_secs = 60"), "{now}");
    drop(board);
    rack.succeed();
}
