//! What goes wrong in a rack: bad images, lost connections, lost power.

use std::time::Duration;

use scenarios::{Action, BoxProcess, Image, Lab, NucConfig, Origin};

use crate::watch::{SMALL, file_server, small_lab, switched_on, tiny, told, wait_small_system};

/// Where the box's images are served badly.
const LISTEN: &str = "10.77.0.1:8099";

/// A file server that serves the box's images badly.
pub fn bad_server(lab: &Lab, arguments: &[&str]) -> (BoxProcess, Image) {
    let images = lab.artifacts().root().join("images");
    let server = file_server(lab, &images, LISTEN, arguments);
    let sha256 = lab.artifacts().sha256("tiny.raw.zst").unwrap();
    (server, Image { url: format!("http://{LISTEN}/tiny.raw.zst"), sha256 })
}

#[test]
fn a_wrong_checksum_fails_with_the_sentence() {
    let wrong = "00".repeat(32);
    let lab = small_lab("wrong-checksum", NucConfig::bios(), |lab| Image {
        sha256: wrong.clone(),
        ..tiny(lab)
    });
    let workflow = lab.create_workflow("install", 1).unwrap();
    let view = lab.wait_workflow(&workflow, "to end", SMALL, |view| view.ended()).unwrap();
    assert_eq!(view.state(), "FAILED");
    let message = view.message("stream-image");
    assert!(message.contains("sha256") && message.contains(&wrong), "{message:?}");
    assert_eq!(view.action("reboot"), "PENDING", "nothing after it ran");
    lab.rack.succeed();
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
    let lab = small_lab("power-cut", NucConfig::bios(), |lab| {
        // Slow enough that the cut falls into the middle.
        let (process, image) = bad_server(lab, &["--rate", "300000"]);
        server = Some(process);
        image
    });
    let nuc = lab.rack.nuc(1);
    let workflow = lab.create_workflow("install", 1).unwrap();
    let running = |view: &scenarios::WorkflowView| view.action("stream-image") == "RUNNING";
    lab.wait_workflow(&workflow, "to write its image", SMALL, running).unwrap();
    nuc.cut_power();
    assert!(!nuc.is_on());
    drop(server.take());
    let (_fast, _) = bad_server(&lab, &[]);

    // Nobody touches anything: the box notices the silence and boots the machine again.
    lab.wait_success(&workflow, SMALL + Duration::from_secs(120)).unwrap();
    wait_small_system(&lab);
    assert_eq!(nuc.count(Origin::Harness, Action::PowerCut), 1);
    assert_eq!(switched_on(&lab), 2, "once to begin, once after the cut");
    lab.rack.succeed();
}
