//! Steps: settings from the command line are written on the boot volume, stored with their history,
//! and in force after a power cut.

use std::path::Path;
use std::process::Command;

use qemu::{Host, Mark, poll};

use super::CLAIM;
use crate::machines::{Machine, RunningBox as _};
use crate::owner::{self, Owner};
use crate::{FIRST_LINE, PATIENCE, boot_volume, run};

/// Runs the steps on the box of the fresh disk at `disk`. `host` is the owner's machine.
pub fn survive_a_power_cut(machine: &impl Machine, disk: &Path, host: &Host, folder: &Path) {
    let running = machine.switch_on(disk).unwrap();
    let told = running.serial().wait_for_whole(Mark::START, CLAIM, PATIENCE).unwrap().0.text;
    let owner = Owner::claims(host, &owner::address(&told), running.serial(), folder);
    let settings = |line: &[&str]| run(owner.tinbox().args(["box", "settings"]).args(line));
    assert_eq!(settings(&["get"]).unwrap().trim(), "", "nothing is set yet");
    let mistakes =
        owner.refused(&["box", "settings", "set", "time.zone=Berlin", "bmc.poll_secs=0"]);
    assert!(mistakes.contains("line 2: bmc.poll_secs: 0 s is not between"), "{mistakes}");
    assert!(mistakes.contains("line 5: time.zone: \"Berlin\" is not a time zone"), "{mistakes}");
    let keys = ["set", "name=attic", "time.zone=Europe/Berlin", "--note", "it moved"];
    settings(&keys).unwrap();
    settings(&["set", "bmc.poll_secs=60"]).unwrap();
    running.cut().unwrap();
    let written = boot_volume::read(disk, "box.toml").unwrap();
    let want = "name = \"attic\"\n\n[time]\nzone = \"Europe/Berlin\"\n\n[bmc]\npoll_secs = 60\n";
    assert_eq!(written, want);
    let names = run(Command::new("mdir").args(["-b", "-i", &boot_volume::of(disk), "::"])).unwrap();
    assert!(!names.contains("::/box.1") && !names.contains("::/BOX.1"), "{names}");

    let running = machine.switch_on(disk).unwrap();
    running.serial().wait_for(FIRST_LINE, PATIENCE).unwrap();
    let history = || settings(&["history"]).ok();
    let history = poll("the box to answer", PATIENCE, history).unwrap();
    let lines: Vec<&str> = history.lines().collect();
    assert!(lines.len() == 3 && lines[1].contains("it moved"), "{history}");
    assert!(lines[2].contains("yes"), "{history}");
    assert_eq!(settings(&["get"]).unwrap(), want);
    let shown = settings(&["diff"]).unwrap();
    assert!(shown.contains("+poll_secs = 60"), "{shown}");
    settings(&["revert", "1"]).unwrap();
    // The output may also name this setting in the note that a restart is needed.
    let now = settings(&["get"]).unwrap();
    assert!(!now.lines().any(|line| line == "poll_secs = 60"), "{now}");
    running.cut().unwrap();
}
