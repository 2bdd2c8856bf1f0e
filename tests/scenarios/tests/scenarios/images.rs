//! Files of other servers come through the box.

use scenarios::{Image, LabConfig, NucConfig, RackConfig};

use crate::watch::{SMALL, file_server, small_lab_of, wait_small_system};

/// A server that is none of the box's addresses; it is in the box's namespace, which the machines
/// reach through the box alone.
const SERVER: &str = "10.99.0.1";

#[test]
fn an_image_of_another_server_is_read_there_once() {
    let mut config = LabConfig::new(RackConfig::new("images").nuc(NucConfig::bios()));
    config.images = true;
    let mut server = None;
    let lab = small_lab_of(config, |lab| {
        let add = ["address", "add", SERVER, "dev", "lo"];
        assert!(lab.rack.box_command("ip").args(add).status().unwrap().success());
        let images = lab.artifacts().root().join("images");
        // The box goes on by itself.
        let badly = ["--drop-at-percent", "50", "--once"];
        server = Some(file_server(lab, &images, &format!("{SERVER}:8099"), &badly));
        let sha256 = lab.artifacts().sha256("tiny.raw.zst").unwrap();
        Image { url: format!("http://{SERVER}:8099/tiny.raw.zst"), sha256 }
    });
    let workflow = lab.create_workflow("install", 1).unwrap();
    lab.wait_success(&workflow, SMALL).unwrap();
    wait_small_system(&lab);

    let log = std::fs::read_to_string(server.as_ref().unwrap().log()).unwrap();
    let asked: Vec<&str> = log.lines().filter(|line| line.starts_with("GET ")).collect();
    let (first, more) = asked.split_first().unwrap();
    assert!(first.contains(" 200 "), "{asked:?}");
    // Once for the other half, and again should that break off too.
    assert!(!more.is_empty() && more.iter().all(|it| it.contains(" 206 ")), "{asked:?}");
    let list = lab.tinbox(&["image", "list"]).unwrap();
    assert!(list.contains("ready") && list.contains("default/install-nuc1"), "{list}");
    lab.rack.succeed();
}
