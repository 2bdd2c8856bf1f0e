//! Shutdown with a program that has a file of the state volume open.

use std::path::Path;
use std::process::Stdio;

use firmware::contained::Contained;
use firmware::{FIRST_LINE, Image, PATIENCE, Variant, run};
use qemu::poll;
use rustix::process::{Pid, Signal, kill_process};

use super::Lab;

/// Starts of the console lines about a volume that is still in use.
const FAILED: [&str; 2] = ["tinbox: cannot unmount ", "tinbox: cannot make "];

/// Requests power off from process 1, as the supervisor does.
fn power_off(machine: &Contained) {
    let first = machine.process_1().unwrap().try_into().ok().and_then(Pid::from_raw);
    kill_process(first.unwrap(), Signal::USR2).unwrap();
}

fn failures(machine: &Contained) -> Vec<String> {
    let lines = machine.serial().lines().into_iter().map(|line| line.text);
    lines.filter(|line| FAILED.iter().any(|start| line.starts_with(start))).collect()
}

/// The first shutdown unmounts all volumes, because process 1 has killed and reaped the program.
/// During the second shutdown, a program of the host uses the volume, and process 1 cannot kill it.
#[test]
fn a_shutdown_ends_every_program_before_it_unmounts_the_volumes() {
    let lab = Lab::new("unmount");
    let orphan = Path::new(env!("CARGO_BIN_EXE_orphan-box"));
    let variant = Variant { tinboxd: Some(orphan), ..Variant::default() };
    let disk = lab.folder().join("disk");
    Image::variant(&lab.folder().join("image"), &variant).unwrap().copy(&disk).unwrap();
    let place = lab.place("box", 0x6f);
    let started = || {
        let machine = place.start(&disk).unwrap();
        machine.serial().wait_for(FIRST_LINE, PATIENCE).unwrap();
        machine
    };

    let mut machine = started();
    power_off(&machine);
    machine.wait_off().unwrap();
    assert_eq!(failures(&machine), [""; 0]);

    let mut machine = started();
    let file = machine.root().join("state/guest");
    // `dd` waits for input, with its output file open.
    let mut writer = machine.command("dd").unwrap();
    writer.arg(format!("of={}", file.display())).stdin(Stdio::piped());
    let mut writer = writer.spawn().unwrap();
    let exists = || run(machine.command("test").unwrap().arg("-e").arg(&file)).ok();
    poll("the host's program to open its file", PATIENCE, exists).unwrap();
    power_off(&machine);
    machine.serial().wait_for("cannot make /state read-only: ", PATIENCE).unwrap();
    writer.kill().unwrap();
    writer.wait().unwrap();
    machine.wait_off().unwrap();
    let failures = failures(&machine);
    assert!(failures[0].starts_with("tinbox: cannot unmount /state: "), "{failures:?}");
    assert_eq!(failures.len(), 2, "{failures:?}");
    lab.succeed();
}
