//! Tests of template checks before a machine is changed.

use crate::place::{DEBIAN, NUC1, Place};

/// Template that needs facts of its machine, and a setting that may be a secret.
const PARTED: &str = r#"version: "0.1"
name: parted
tasks:
- name: install
  worker: "{{ .device_1 }}"
  actions:
  - name: write
    image: image2disk
    environment:
      DEST_DISK: {{ formatPartition (index .Hardware.Disks 0) 2 }}
      MAC: {{ (index .Hardware.Interfaces 0).DHCP.MAC | replace ":" "-" }}
      MODE: 0600
"#;

#[tokio::test(flavor = "multi_thread")]
async fn mistakes_are_found_without_a_box() {
    let place = Place::start().await;
    let lint = ["--kubeconfig", "/nonexistent", "template", "lint", "--file", "t.yaml"];
    place.file("t.yaml", PARTED);
    assert!(place.run(&lint).await.good().starts_with("no mistake found"));
    place.file("t.yaml", "# nothing\n\n");
    let ended = place.run(&lint).await;
    assert_eq!((ended.code, ended.out.as_str()), (2, ""), "{ended:?}");
    assert!(ended.err.contains("version, name and tasks are missing"), "{}", ended.err);
    for (from, to, words) in [
        ("replace", "replaze", "line 11: function \"replaze\" not defined"),
        ("index .Hardware.Disks 0)", "index .Hardware.Disks 0", "line 10: "),
        ("{{ .device_1 }}", "{{ .device_1 ", "line 5: "),
    ] {
        place.file("t.yaml", &PARTED.replace(from, to));
        let ended = place.run(&lint).await;
        assert_eq!((ended.code, ended.out.as_str()), (2, ""), "{ended:?}");
        assert!(ended.err.contains("t.yaml") && ended.err.contains(words), "{}", ended.err);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn misspelt_keys_and_wrong_values_are_named_with_their_lines() {
    let place = Place::start().await;
    let text =
        DEBIAN.replace("{{.device_1}}", "{{ .device_1 }}") + "global_timout: 600\ntasks_: []\n";
    place.file("t.yaml", &text);
    let line = DEBIAN.lines().count() + 1;
    let meant = "not a key of a workflow document; did you mean global_timeout?";
    let expected = format!("line {line}: global_timout: {meant}");
    let ended = place.run(&["template", "lint", "-f", "t.yaml"]).await;
    assert!(ended.code == 2 && ended.err.contains(&expected), "{ended:?}");
    assert!(ended.err.contains("did you mean tasks?"), "all are named: {ended:?}");

    let made = place.run(&["template", "create", "-f", "t.yaml"]).await;
    assert_eq!(made.code, 0, "{made:?}");
    assert!(made.err.contains(&format!("warning: spec.data: {expected}")), "{made:?}");
    let wrong = format!("global_timeout: 1m\n{DEBIAN}");
    place.file("t.yaml", &wrong.replacen("name: ", "name: x-", 1));
    let expected = "line 1: global_timeout: expected a whole number of seconds, found \"1m\"";
    for command in ["lint", "create"] {
        let ended = place.run(&["template", command, "-f", "t.yaml"]).await;
        assert!(ended.err.contains(expected), "{command}: {ended:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_template_is_shown_as_its_machine_has_it() {
    let place = Place::start().await;
    place.file("nuc1.yaml", &format!("{NUC1}  disks: [{{device: /dev/nvme0n1}}]\n"));
    place.run(&["hardware", "push", "-f", "nuc1.yaml"]).await.good();
    place.file("t.yaml", PARTED);
    let render = ["template", "render", "--file", "t.yaml", "--hardware", "nuc1"];
    let shown = place.run(&render).await.good();
    assert!(shown.contains("worker: \"52:54:00:77:00:01\"\n"), "{shown}");
    assert!(shown.contains("DEST_DISK: /dev/nvme0n1p2\n"), "{shown}");
    assert!(shown.contains("MAC: 52-54-00-77-00-01\n      MODE: 0600\n"), "{shown}");

    place.file("debian.yaml", DEBIAN);
    place.run(&["template", "create", "-f", "debian.yaml"]).await.good();
    let of_the_box = ["template", "render", "debian", "--hardware", "nuc1"];
    let shown = place.run(&of_the_box).await.good();
    assert_eq!(shown, DEBIAN.replace("{{.device_1}}", "52:54:00:77:00:01"));

    place.file("t.yaml", &PARTED.replace(".device_1", ".device_2"));
    let ended = place.run(&render).await;
    assert!(ended.code == 2 && ended.err.contains("device_2"), "{ended:?}");
    place.file("t.yaml", &PARTED.replace("    image: image2disk\n", ""));
    let ended = place.run(&render).await;
    assert!(ended.code == 2 && ended.err.contains("image"), "{ended:?}");
    assert!(ended.out.contains("MODE: 0600"), "what it became is shown: {ended:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn hints_about_templates_name_the_command_that_helps() {
    let place = Place::start().await;
    place.file("debian.yaml", DEBIAN);
    let create = ["template", "create", "--file", "debian.yaml"];
    place.run(&create).await.good();
    let taken = place.run(&create).await;
    assert_eq!(taken.code, 4, "{taken:?}");
    let hint =
        "hint: `tinbox template update debian --file FILE` replaces it; --name makes another";
    assert!(taken.err.contains("template \"debian\" already exists"), "{taken:?}");
    assert!(taken.err.trim_end().ends_with(hint), "{taken:?}");
    let unknown = place.run(&["template", "create", "--library", "debina"]).await;
    assert_eq!(unknown.code, 2, "{unknown:?}");
    let hint = "hint: `tinbox template library` describes each";
    assert!(unknown.err.trim_end().ends_with(hint), "{unknown:?}");

    // The mistake is in the stored template, not in a file.
    place.file("wrong.yaml", "name: wrong\ntasks: {{ .missing.part }}\n");
    place.run(&["template", "create", "--file", "wrong.yaml"]).await.good();
    place.file("hardware.yaml", NUC1);
    place.run(&["hardware", "push", "--file", "hardware.yaml"]).await.good();
    let stored = place.run(&["template", "render", "wrong", "--hardware", "nuc1"]).await;
    assert!(stored.err.starts_with("error: cannot render template wrong: "), "{stored:?}");
    assert!(stored.err.contains("hint: `tinbox template get` shows its text"), "{stored:?}");
    let line = ["template", "render", "--file", "wrong.yaml", "--hardware", "nuc1"];
    let file = place.run(&line).await;
    assert!(file.err.starts_with("error: cannot use wrong.yaml: "), "{file:?}");
    assert!(file.err.contains("hint: correct the file and run the command again"), "{file:?}");
}
