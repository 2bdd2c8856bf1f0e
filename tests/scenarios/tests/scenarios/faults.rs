//! Faults of a rack: lost connections, lost power.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::process::Command;
use std::time::Duration;

use scenarios::{
    Action, BoxProcess, Image, Lab, LabConfig, NucConfig, Origin, RackConfig, WorkflowView, poll,
};

use crate::watch::{
    SMALL, file_server, small_lab, small_lab_of, switched_on, told, wait_small_system,
};

/// Address of the file server with faults.
const LISTEN: &str = "10.77.0.1:8099";

/// Configuration of a lab with the product's minimum silence (20 s) before a machine is booted
/// again.
fn of_silence(name: &str) -> LabConfig {
    let mut config = LabConfig::new(RackConfig::new(name).nuc(NucConfig::bios()));
    config.silence_secs = 20;
    config
}

/// Starts a file server that serves the box's images with faults.
pub fn bad_server(lab: &Lab, arguments: &[&str]) -> (BoxProcess, Image) {
    let images = lab.artifacts().root().join("images");
    let server = file_server(lab, &images, LISTEN, arguments);
    let sha256 = lab.artifacts().sha256("tiny.raw.zst").unwrap();
    (server, Image { url: format!("http://{LISTEN}/tiny.raw.zst"), sha256 })
}

#[test]
fn a_dropped_connection_is_resumed() {
    let mut server = None;
    let lab = small_lab("dropped-connection", NucConfig::bios(), |lab| {
        let (process, image) = bad_server(lab, &["--drop-at-percent", "50", "--once"]);
        server = Some(process);
        image
    });
    let workflow = lab.create_workflow("install", 1).unwrap();
    lab.wait_success(&workflow, SMALL).unwrap();
    wait_small_system(&lab);
    let log = std::fs::read_to_string(server.as_ref().unwrap().log()).unwrap();
    assert!(log.contains(" 206 "), "the second half was asked for alone:\n{log}");
    assert_eq!(told(&lab, "action stream-image started"), 1);
    lab.rack.succeed();
}

#[test]
fn power_cut_in_the_middle_of_an_image() {
    let mut server = None;
    let lab = small_lab_of(of_silence("power-cut"), |lab| {
        // Slow enough that the cut happens in the middle.
        let (process, image) = bad_server(lab, &["--rate", "300000"]);
        server = Some(process);
        image
    });
    let nuc = lab.rack.nuc(1);
    let workflow = lab.create_workflow("install", 1).unwrap();
    let running = |view: &WorkflowView| view.action("stream-image") == "RUNNING";
    lab.wait_workflow(&workflow, "to write its image", SMALL, running).unwrap();
    nuc.cut_power();
    assert!(!nuc.is_on());
    drop(server.take());
    let (_fast, _) = bad_server(&lab, &[]);

    // No user acts: the box notices the silence and boots the machine again.
    lab.wait_success(&workflow, SMALL + Duration::from_secs(120)).unwrap();
    wait_small_system(&lab);
    assert_eq!(nuc.count(Origin::Harness, Action::PowerCut), 1);
    // Power-ons: one to begin and one after the cut. The agent of an emulator without CPU time is
    // silent too; the box then records `AgentSilent` and boots the machine once more.
    let log = fs::read_to_string(lab.daemon.log()).unwrap();
    let rescues = log.lines().filter(|line| line.contains("reason=\"AgentSilent\"")).count();
    let on = switched_on(&lab);
    assert!(on >= 2 && on <= 1 + rescues, "on {on} times, {rescues} of them after silence");
    lab.rack.succeed();
}

/// A template with only the image, so that the disk can be compared with it.
fn only_the_image(image: &Image) -> String {
    let Image { url, sha256 } = image;
    format!(
        "version: \"0.1\"\nname: write\nglobal_timeout: 3600\ntasks:\n- name: write\n  \
         worker: \"{{{{.device_1}}}}\"\n  actions:\n  - name: stream-image\n    \
         image: image2disk\n    timeout: 2400\n    environment: {{IMG_URL: {url}, \
         IMG_SHA256: {sha256}, DEST_DISK: /dev/vda}}\n"
    )
}

#[test]
fn the_machine_and_the_box_lose_power_and_the_disk_is_the_image() {
    let mut server = None;
    let mut lab = small_lab_of(of_silence("two-cuts"), |lab| {
        let (process, image) = bad_server(lab, &["--rate", "300000"]);
        let file = lab.file("write.yaml", &only_the_image(&image)).unwrap();
        lab.tinbox(&["template", "create", "--file", file.to_str().unwrap()]).unwrap();
        server = Some(process);
        image
    });
    let workflow = lab.create_workflow("write", 1).unwrap();
    let disk = lab.rack.nuc(1).disk().to_owned();
    let is_written = || (fs::metadata(&disk).unwrap().blocks() > 2048).then_some(());
    poll("the first mebibyte to be written", SMALL, is_written).unwrap();
    lab.rack.nuc(1).cut_power();
    lab.rack.nuc(1).blank_disk().unwrap();

    // The box boots the machine again, which starts over; then the box itself is stopped.
    poll("the first mebibyte to be written again", SMALL * 2, is_written).unwrap();
    lab.rack.unplug_box().unwrap();
    lab.daemon.restart().unwrap();
    lab.wait_until_ready().unwrap();
    drop(server.take());
    let (_fast, _) = bad_server(&lab, &[]);
    lab.rack.plug_box().unwrap();

    lab.wait_success(&workflow, SMALL * 2).unwrap();
    let raw = lab.rack.work_dir().join("tiny.raw");
    let packed = lab.artifacts().root().join("images/tiny.raw.zst");
    let mut zstd = Command::new("zstd");
    assert!(zstd.args(["-q", "-d"]).arg(packed).arg("-o").arg(&raw).status().unwrap().success());
    let mut compare = Command::new("cmp");
    compare.arg("-n").arg(fs::metadata(&raw).unwrap().len().to_string()).arg(&raw).arg(&disk);
    assert!(compare.status().unwrap().success(), "the disk is the image, bit for bit");
    lab.rack.succeed();
}
