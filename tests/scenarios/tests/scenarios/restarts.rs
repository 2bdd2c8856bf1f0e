//! Kills of the box with SIGKILL at five points of an installation.

use scenarios::{Lab, NucConfig, WorkflowView};

use crate::watch::{SMALL, small_lab, switched_on, tiny, told, wait_small_system};

fn kill(lab: &mut Lab, point: &str) {
    lab.daemon.restart().unwrap_or_else(|error| panic!("{point}: {error}"));
    lab.wait_until_ready().unwrap_or_else(|error| panic!("{point}: {error:#}"));
}

#[test]
fn the_box_is_killed_at_five_points() {
    let mut lab = small_lab("kill-nine", NucConfig::bios(), tiny);
    let workflow = lab.create_workflow("install", 1).unwrap();
    kill(&mut lab, "the workflow was just acknowledged");

    scenarios::poll("the machine to be on", SMALL, || lab.rack.nuc(1).is_on().then_some(()))
        .unwrap();
    kill(&mut lab, "the machine was just switched on");

    let serial = lab.rack.nuc(1).serial();
    serial.wait_for("Linux version", SMALL).unwrap();
    kill(&mut lab, "the agent is starting");

    let running = |view: &WorkflowView| view.action("stream-image") == "RUNNING";
    lab.wait_workflow(&workflow, "to write its image", SMALL, |view| {
        running(view) || view.action("stream-image") == "SUCCESS"
    })
    .unwrap();
    kill(&mut lab, "the image is being written");

    let rebooted = |view: &WorkflowView| view.action("reboot") == "SUCCESS";
    lab.wait_workflow(&workflow, "to reboot the machine", SMALL, rebooted).unwrap();
    kill(&mut lab, "the last action was just reported");

    lab.wait_success(&workflow, SMALL).unwrap();
    wait_small_system(&lab);
    assert_eq!(switched_on(&lab), 1, "no power action was repeated");
    let writes = lab
        .rack
        .nuc(1)
        .serial()
        .lines()
        .iter()
        .filter(|line| line.text.contains("action begins action=stream-image"))
        .count();
    assert_eq!(writes, 1, "the agent wrote the disk once");
    assert!(told(&lab, "action stream-image started") <= 1);
    lab.rack.succeed();
}
