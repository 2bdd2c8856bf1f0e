mod findings;

use super::rules::is_image_reference;
use super::{DocumentError, parse};

const SEED: &str = r#"
version: "0.1"
name: "basic-provision"
global_timeout: 3600
future: {anything: goes}
tasks:
  - name: "disk-wipe"
    worker: "52:54:00:77:00:01"
    volumes:
      - /dev:/dev
    actions:
      - name: "wipe-disk"
        image: disk-wipe:latest
        timeout: 600
        environment:
          BLOCK_DEVICE: "/dev/sda"
          MODE: 0600
          COMPRESSED: true
          UID: 0
          CONTENTS: |
            a
            b
  - name: "os-install"
    worker: "52:54:00:77:00:01"
    actions:
      - name: "install-os"
        image: osie-installer:latest
        timeout: 2400
"#;

#[test]
fn scalars_keep_their_raw_text() {
    let document = parse(SEED).unwrap();
    assert_eq!(document.global_timeout, 3600);
    let environment = &document.tasks[0].actions[0].environment;
    assert_eq!(environment["MODE"], "0600");
    assert_eq!(environment["COMPRESSED"], "true");
    assert_eq!(environment["UID"], "0");
    assert_eq!(environment["CONTENTS"], "a\nb\n");
    assert!(document.tasks[1].volumes.is_empty());
}

#[test]
fn tasks_get_ids() {
    let mut count = 0;
    let tasks = parse(SEED).unwrap().into_tasks(|| {
        count += 1;
        format!("id{count}")
    });
    assert_eq!((tasks[0].id.as_str(), tasks[0].actions[0].id.as_str()), ("id1", "id2"));
    assert_eq!(tasks[1].actions[0].timeout, 2400);
}

#[test]
fn every_broken_rule_is_told_at_once() {
    let text = "name: ''\ntasks:\n- name: a\n  worker: ''\n  actions:\n\
                    \x20 - {name: x, image: ''}\n  - {name: x, image: ok}\n";
    let Err(DocumentError::Rules(problems)) = parse(text) else { panic!("accepted") };
    assert_eq!(problems.len(), 4, "{problems:?}");
    assert!(matches!(parse("tasks: [1"), Err(DocumentError::Yaml(_))));
}

#[test]
fn image_references() {
    for good in [
        "disk-wipe:latest",
        "quay.io/tinkerbell/actions/image2disk:v1.0.0",
        "127.0.0.1:5000/alpine",
        "quay.io/a/b@sha256:aec070645fe53ee3b3763059376134f058cc337247c978add178b6ccdfb0019f",
    ] {
        assert!(is_image_reference(good), "{good}");
    }
    for bad in ["", "a b", "/x", "x/", "x:ä", "x@sha256"] {
        assert!(!is_image_reference(bad), "{bad}");
    }
}

#[test]
fn an_action_may_be_begun_again_a_few_times() {
    let with = |retries: &str| {
        let end = format!("timeout: 2400\n        retries: {retries}\n");
        parse(&SEED.replace("timeout: 2400\n", &end))
    };
    let tasks = with("3").unwrap().into_tasks(String::new);
    assert_eq!((tasks[0].actions[0].retries, tasks[1].actions[0].retries), (0, 3));
    for wrong in ["-1", "11"] {
        let error = with(wrong).unwrap_err().to_string();
        assert!(error.contains(&format!("tasks[1].actions[0].retries: {wrong} is not")), "{error}");
    }
}
