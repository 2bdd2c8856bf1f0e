//! Files of other servers, fetched through the box.

use scenarios::{IMAGE_SERVER, Image, LabConfig, NucConfig, RackConfig, image_server};

use crate::watch::{SMALL, file_server_program, small_lab_of, wait_small_system};

#[test]
fn an_image_of_another_server_is_read_there_once() {
    let mut config = LabConfig::new(RackConfig::new("images").nuc(NucConfig::bios()));
    config.images = true;
    let mut server = None;
    let lab = small_lab_of(config, |lab| {
        let host = image_server(lab).unwrap();
        let images = lab.artifacts().root().join("images");
        // The box resumes the download by itself.
        let badly = ["--drop-at-percent", "50", "--once"];
        let listen = format!("{IMAGE_SERVER}:8099");
        let program = file_server_program(lab, &images, &listen, &badly);
        server = Some((host.spawn(program).unwrap(), host));
        let sha256 = lab.artifacts().sha256("tiny.raw.zst").unwrap();
        Image { url: format!("http://{IMAGE_SERVER}:8099/tiny.raw.zst"), sha256 }
    });
    let workflow = lab.create_workflow("install", 1).unwrap();
    lab.wait_success(&workflow, SMALL).unwrap();
    wait_small_system(&lab);

    let log = std::fs::read_to_string(server.as_ref().unwrap().0.log()).unwrap();
    let asked: Vec<&str> = log.lines().filter(|line| line.starts_with("GET ")).collect();
    let (first, more) = asked.split_first().unwrap();
    assert!(first.contains(" 200 "), "{asked:?}");
    // Once for the other half, and again if that transfer breaks too.
    assert!(!more.is_empty() && more.iter().all(|it| it.contains(" 206 ")), "{asked:?}");
    let list = lab.tinbox(&["image", "list", "-o", "wide"]).unwrap();
    assert!(list.contains("ready") && list.contains("default/install-nuc1"), "{list}");
    lab.rack.succeed();
}
