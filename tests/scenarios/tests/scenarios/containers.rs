//! Actions that are container images, on a machine with 512 MiB of memory.

use std::fs::File;
use std::io::Read as _;

use scenarios::{ImageRegistry, Lab, LabConfig, NucConfig, RackConfig, WorkflowView};

use crate::watch::{ONE_START, SMALL, switched_on};

const NAME: &str = "tools/busybox:v1";

fn template() -> String {
    let image = format!("{}/{NAME}", ImageRegistry::HOST);
    format!(
        r#"version: "0.1"
name: marks
global_timeout: 1800
tasks:
- name: marks
  worker: "{{{{.device_1}}}}"
  volumes:
  - /dev:/dev
  environment:
    DISK: "{{{{ index .Hardware.Disks 0 }}}}"
  actions:
  - name: second-time
    image: {image}
    timeout: 120
    retries: 1
    command:
    - -c
    - >-
      if [ "$(dd if=$DISK bs=6 count=1)" = MARKED ]; then echo the mark is there; else
      echo there is no mark yet; printf MARKED | dd of=$DISK conv=fsync; exit 4; fi
  - name: looks-around
    image: {image}
    timeout: 120
    environment:
      COLOUR: blue
    command:
    - -c
    - echo pid $$ user $(id -u) colour $COLOUR from $(head -1 /etc/resolv.conf)
  - name: asks-for-a-restart
    image: {image}
    timeout: 120
    volumes:
    - /worker:/worker
    command: [-c, "touch /worker/reboot"]
"#
    )
}

/// A workflow whose action fails permanently and leaves a message.
fn gives_up() -> String {
    let image = format!("{}/{NAME}", ImageRegistry::HOST);
    format!(
        "version: '0.1'\nname: gives-up\nglobal_timeout: 1800\ntasks:\n- name: gives-up\n  \
         worker: '{{{{.device_1}}}}'\n  actions:\n  - name: gives-up\n    image: {image}\n    \
         timeout: 120\n    command: [-c, 'exit 7']\n    \
         on-failure: [-c, 'echo it gave up; exit 8']\n"
    )
}

#[test]
fn a_container_marks_the_disk_and_says_so() {
    let mut config = LabConfig::new(RackConfig::new("containers").nuc(NucConfig::bios()));
    config.images = true;
    config.plain_registries = vec![ImageRegistry::HOST.to_owned()];
    let lab = Lab::start(config).unwrap();
    lab.push_nuc(1, "ssh-ed25519 AAAA scenario", "#cloud-config\n").unwrap();
    let registry = ImageRegistry::with_container(&lab, NAME).unwrap();
    for (name, text) in [("gives-up", gives_up()), ("marks", template())] {
        let file = lab.file(&format!("{name}.yaml"), &text).unwrap();
        lab.tinbox(&["template", "create", "--file", file.to_str().unwrap()]).unwrap();
    }
    let workflow = lab.create_workflow("gives-up", 1).unwrap();
    let view = lab.wait_workflow(&workflow, "to end", SMALL, WorkflowView::ended).unwrap();
    let said = view.message("gives-up");
    assert_eq!(view.state(), "FAILED");
    for words in ["exit status: 7", "on-failure ended as FAILED", "exit status: 8: it gave up"] {
        assert!(said.contains(words), "{said:?} does not say {words:?}");
    }

    let create =
        ["workflow", "create", "-t", "marks", "-r", "nuc1", "--name", "marks", "--no-boot"];
    lab.tinbox(&create).unwrap();
    let view = lab.wait_success("marks", SMALL).unwrap();
    assert!(view.message("second-time").contains("fetched"), "{:?}", view.actions());
    let serial = lab.rack.nuc(1).serial();
    for said in [
        "there is no mark yet",
        "ended with exit status: 4",
        "the mark is there",
        "pid 1 user 0 colour blue from nameserver",
        "requests a restart",
    ] {
        serial.wait_for(said, SMALL).unwrap();
    }
    let mut mark = [0; 6];
    File::open(lab.rack.nuc(1).disk()).unwrap().read_exact(&mut mark).unwrap();
    assert_eq!(&mark, b"MARKED");
    let log = registry.log().unwrap();
    assert!(log.contains("/v2/tools/busybox/blobs/sha256:"), "it came from there: {log}");
    assert_eq!(switched_on(&lab), 1, "{ONE_START}");
    lab.rack.succeed();
}
