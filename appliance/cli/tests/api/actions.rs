//! Tests of the actions on machines, of `status` and of the confirmations.

use std::process::Stdio;

use api::tinkerbell::{CANCEL_REQUEST, RETRY_FROM, RETRY_REQUEST};
use resources::{ListOptions, WriteOptions};
use serde_json::{Value, json};
use status::view::work::DISMISSED;
use status::view::{Machine, MachineState, StatusView, Trouble, example};
use tokio::io::AsyncWriteExt as _;

use crate::place::{DEBIAN, NUC1, Place, end};

const WORKFLOW: &str = "tinkerbell.org/workflows";
const HARDWARE: &str = "tinkerbell.org/hardware";
const JOB: &str = "bmc.tinkerbell.org/jobs";
const NEW: &str = "88:ae:dd:01:02:03";
const KEY: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGk0X1w7K6s3yT1p8h2v5Jc9bq0eRkUuZ4mWnDfLxTgA me\n";

/// Returns a rack whose machine nuc1 has the workflow `a` in this state.
async fn rack(state: MachineState, workflow: &str) -> Place {
    let place = Place::start().await;
    place.file("hardware.yaml", NUC1);
    place.file("template.yaml", DEBIAN);
    place.run(&["hardware", "push", "-f", "hardware.yaml"]).await.good();
    place.run(&["template", "create", "-f", "template.yaml"]).await.good();
    let line = ["workflow", "create", "-t", "debian", "-r", "nuc1", "--name", "a", "--no-boot"];
    place.run(&line).await.good();
    place.write_status(WORKFLOW, "a", json!({ "state": workflow })).await;
    show(&place, state);
    place
}

fn show(place: &Place, state: MachineState) {
    let trouble = Trouble {
        what: "image2disk failed".into(),
        on: "nuc1".into(),
        why: "checksum does not match".into(),
        ..Trouble::default()
    };
    let mac = "52:54:00:77:00:01".parse().ok();
    let machine = Machine {
        name: "nuc1".into(),
        ip: "10.77.0.11".into(),
        workflow: "a".into(),
        has_bmc: true,
        trouble: (state == MachineState::Failed).then_some(trouble),
        mac,
        state,
        ..Machine::default()
    };
    *place.view.lock().unwrap() =
        StatusView { machines: vec![machine], cluster_api: Default::default(), ..example::calm() };
}

async fn annotations(place: &Place) -> Value {
    let workflow = place.engine.get(WORKFLOW, "default", "a").await.unwrap();
    workflow["metadata"]["annotations"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_status_names_the_problem_and_the_command_that_helps() {
    let place = rack(MachineState::Failed, "FAILED").await;
    let shown = place.run(&["status"]).await.good();
    assert!(shown.starts_with("1 machine, not in service; nuc1 needs you\n"), "{shown}");
    let block = "nuc1 FAILED\n  image2disk failed on nuc1: checksum does not match.\n  \
                 $ tinbox machine retry nuc1\n";
    assert!(shown.contains(block), "{shown}");
    let whole = place.run(&["status", "-o", "json"]).await.good();
    let whole: Value = serde_json::from_str(&whole).unwrap();
    assert_eq!(whole[0]["machines"][0]["state"], "failed");

    let checked = place.run(&["status", "--check"]).await;
    assert_eq!((checked.code, checked.out.as_str()), (1, ""), "{checked:?}");
    assert!(checked.err.starts_with("error: nuc1 needs you\n"), "{checked:?}");
    show(&place, MachineState::InService);
    assert_eq!(place.run(&["status", "--check"]).await.good(), "");

    let list = place.run(&["machine", "list"]).await.good();
    assert!(list.starts_with("NAME   STATE        STEP   POWER"), "{list}");
    let wide = place.run(&["machine", "ls", "-o", "wide"]).await.good();
    assert!(wide.contains("MAC") && wide.contains("52:54:00:77:00:01"), "{wide}");
    assert_eq!(place.run(&["machine", "list", "-o", "name"]).await.good(), "nuc1\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_machine_is_retried_by_any_of_its_names() {
    for name in ["nuc1", "52:54:00:77:00:01", "10.77.0.11"] {
        let place = rack(MachineState::Failed, "FAILED").await;
        let said = place.run(&["machine", "retry", name]).await.good();
        assert_eq!(said, "nuc1: The retry is requested.\n");
        let annotations = annotations(&place).await;
        assert_eq!(annotations[RETRY_FROM], "failed");
        assert!(annotations[RETRY_REQUEST].is_string());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_loses_something_is_confirmed_first() {
    let place = rack(MachineState::Failed, "FAILED").await;
    let effect = "nuc1: Runs the workflow again from its first action. The workflow writes its \
                  disks again.\n";
    let before = annotations(&place).await;
    let unasked = place.run(&["machine", "start-over", "nuc1"]).await;
    assert_eq!(unasked.code, 2, "{unasked:?}");
    let refusal = format!("{effect}error: no terminal for a prompt: give --yes\n");
    assert!(unasked.err.starts_with(&refusal), "{unasked:?}");
    let dry = place.run(&["machine", "start-over", "nuc1", "--dry-run"]).await;
    assert_eq!((dry.code, dry.err), (0, format!("would change: {effect}")));
    assert_eq!(annotations(&place).await, before, "nothing was written");
    place.run(&["machine", "start-over", "nuc1", "--yes"]).await.good();
    assert_eq!(annotations(&place).await[RETRY_FROM], "start");
    place.run(&["machine", "dismiss", "nuc1"]).await.good();
    assert!(annotations(&place).await[DISMISSED].is_string());

    for line in [
        &["workflow", "delete", "a"][..],
        &["template", "delete", "debian"],
        &["hardware", "delete", "nuc1"],
        &["machine", "power", "off", "nuc1"],
    ] {
        let unasked = place.run(line).await;
        assert_eq!((unasked.code, unasked.out.as_str()), (2, ""), "{unasked:?}");
        let dry = place.run(&[line, &["--dry-run"]].concat()).await;
        assert_eq!((dry.code, dry.out.as_str()), (0, ""), "{dry:?}");
    }
    assert!(place.engine.get(WORKFLOW, "default", "a").await.is_ok());
    assert!(place.engine.get(HARDWARE, "default", "nuc1").await.is_ok());
    let jobs = place.engine.list(JOB, Some("default"), ListOptions::default()).await.unwrap();
    assert_eq!(jobs.items, Vec::<Value>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_is_erased_only_by_its_name() {
    let place = rack(MachineState::Ready, "SUCCESS").await;
    let patch = resources::Patch::Merge(json!({ "spec": { "disks": [{ "device": "/dev/sda" }] } }));
    let options = WriteOptions::default();
    place.engine.patch(HARDWARE, "default", "nuc1", patch, options).await.unwrap();
    let (code, said) = at_terminal(&place, "machine erase nuc1", "yes").await;
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("Everything on these disks is lost."), "{said}");
    let (code, said) = at_terminal(&place, "machine erase nuc1", "nuc1").await;
    assert_eq!(code, 0, "{said}");
    let all = place.engine.list(WORKFLOW, Some("default"), ListOptions::default()).await.unwrap();
    let erases = |it: &&Value| it["spec"]["templateRef"] == "tinbox-erase-disks";
    assert_eq!(all.items.iter().filter(erases).count(), 1, "{all:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_workflow_is_canceled_and_paused_by_its_machine() {
    let place = rack(MachineState::Installing, "RUNNING").await;
    place.run(&["machine", "pause", "nuc1"]).await.good();
    let workflow = place.engine.get(WORKFLOW, "default", "a").await.unwrap();
    assert_eq!(workflow["spec"]["paused"], true);
    place.run(&["machine", "cancel", "nuc1", "--yes"]).await.good();
    assert!(annotations(&place).await[CANCEL_REQUEST].is_string());
    show(&place, MachineState::Held);
    place.run(&["machine", "resume", "nuc1"]).await.good();
    let workflow = place.engine.get(WORKFLOW, "default", "a").await.unwrap();
    assert_eq!(workflow["spec"]["paused"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_action_that_the_state_forbids_names_those_that_it_permits() {
    let place = rack(MachineState::InService, "SUCCESS").await;
    let refused = place.run(&["machine", "retry", "nuc1"]).await;
    assert_eq!((refused.code, refused.out.as_str()), (4, ""));
    let said = "error: cannot retry nuc1: its state is In service\nhint: nuc1 permits: install, \
                power on, power off, erase\n";
    assert_eq!(refused.err, said);
    // The view is older than the workflow.
    show(&place, MachineState::Failed);
    let late = place.run(&["machine", "retry", "nuc1"]).await;
    assert_eq!(late.code, 4, "{late:?}");
    assert!(late.err.contains("cannot retry workflow a: its state is succeeded"), "{late:?}");
    let unknown = place.run(&["machine", "retry", "nuc9"]).await;
    assert_eq!(unknown.code, 3, "{unknown:?}");
    let said = "error: found no machine \"nuc9\"\nhint: `tinbox machine list` shows all names; \
                `tinbox hardware push` adds a machine\n";
    assert_eq!(unknown.err, said);
}

/// Runs a command line on a terminal, and types `reply`.
async fn at_terminal(place: &Place, line: &str, reply: &str) -> (i32, String) {
    let mut script = tokio::process::Command::new("script");
    let program = format!("{} {line}", env!("CARGO_BIN_EXE_tinbox"));
    script.args(["--quiet", "--return", "--command", &program, "/dev/null"]);
    script.env("TINBOX_KUBECONFIG", &place.kubeconfig).env("NO_COLOR", "1").kill_on_drop(true);
    script.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = script.spawn().unwrap();
    let mut typed = child.stdin.take().unwrap();
    typed.write_all(format!("{reply}\n").as_bytes()).await.unwrap();
    let ended = end(child).await;
    drop(typed);
    (ended.code, ended.out)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_in_service_is_switched_off_by_its_typed_name() {
    let place = rack(MachineState::InService, "SUCCESS").await;
    let (code, said) = at_terminal(&place, "machine power off nuc1", "yes").await;
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("type nuc1 to continue: "), "{said}");
    assert!(said.contains("is not nuc1: nothing was done"), "{said}");
    let jobs = || place.engine.list(JOB, Some("default"), ListOptions::default());
    assert_eq!(jobs().await.unwrap().items.len(), 0);
    let (code, said) = at_terminal(&place, "machine power nuc1 off", "nuc1").await;
    assert_eq!(code, 0, "{said}");
    assert_eq!(jobs().await.unwrap().items[0]["spec"]["tasks"][0]["powerAction"], "off");
    show(&place, MachineState::Ready);
    let (code, said) = at_terminal(&place, "machine power cycle nuc1", "y").await;
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("continue? (yes or no)"), "{said}");
}

/// Adds a new machine to the view, on a network that the box serves.
async fn arrive(place: &Place) {
    let network = json!({
        "metadata": { "name": "eth1" },
        "spec": { "interface": "eth1", "address": "10.77.0.1/24", "mode": "reserved" },
    });
    let networks = "tinbox.dev/networks";
    place.engine.create(networks, "", network, WriteOptions::default()).await.unwrap();
    let mac = NEW.parse().ok();
    let machine = Machine { name: NEW.into(), mac, ..Machine::default() };
    place.view.lock().unwrap().machines.push(machine);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_machine_is_installed_by_one_command() {
    let place = rack(MachineState::InService, "SUCCESS").await;
    arrive(&place).await;
    let key = place.file("id.pub", KEY).display().to_string();
    let line = ["machine", "install", NEW, "--name", "nuc-02", "--ssh-key", &key];
    let which = place.run(&line).await;
    assert_eq!(which.code, 2, "{which:?}");
    assert!(which.err.contains("hint: give --system, one of: "), "{which:?}");
    assert!(which.err.contains("debian"), "{which:?}");
    let line = [&line[..], &["--system", "ubuntu"]].concat();
    let disk = place.run(&line).await;
    assert!(disk.code == 2 && disk.err.contains("give --disk"), "{disk:?}");
    let wrong = place.run(&[&line[..], &["--disk", "sda", "--address", "10.9.9.9"]].concat()).await;
    assert_eq!(wrong.code, 2, "{wrong:?}");
    assert!(wrong.err.contains("--disk: \"sda\" is not a disk"), "{wrong:?}");
    assert!(wrong.err.contains("--address: "), "all mistakes at once: {wrong:?}");

    let line = [&line[..], &["--disk", "/dev/nvme0n1"]].concat();
    let dry = place.run(&[&line[..], &["--dry-run"]].concat()).await;
    assert!(dry.err.contains("Everything on the chosen disk is erased."), "{dry:?}");
    assert!(dry.good().contains("/dev/nvme0n1"));
    assert!(place.engine.get(HARDWARE, "default", "nuc-02").await.is_err());

    let done = place.run(&[&line[..], &["--yes"]].concat()).await;
    assert!(done.err.contains("nuc-02 has no power control: switch it on"), "{done:?}");
    let said = done.good();
    assert!(said.starts_with("workflow/nuc-02-") && said.ends_with(" on nuc-02\n"), "{said}");
    let hardware = place.engine.get(HARDWARE, "default", "nuc-02").await.unwrap();
    assert_eq!(hardware["spec"]["interfaces"][0]["dhcp"]["mac"], NEW);
    assert_eq!(hardware["spec"]["metadata"]["instance"]["ssh_keys"][0], KEY.trim());
    let all = place.engine.list(WORKFLOW, Some("default"), ListOptions::default()).await.unwrap();
    assert!(all.items.iter().any(|it| it["spec"]["hardwareRef"] == "nuc-02"), "{all:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_machine_is_added_without_an_installation() {
    let place = rack(MachineState::InService, "SUCCESS").await;
    arrive(&place).await;
    let nameless = place.run(&["machine", "enroll", NEW]).await;
    assert!(nameless.code == 2 && nameless.err.contains("--name: "), "{nameless:?}");
    let added = place.run(&["machine", "enroll", NEW, "--name", "nuc-02"]).await.good();
    assert_eq!(added, "hardware/nuc-02 created\n");
    let known = place.run(&["machine", "enroll", "nuc1", "--name", "other"]).await;
    assert_eq!(known.code, 4, "{known:?}");
    let viewer = place.run(&["capi", "kubeconfig", "--role", "viewer"]).await.good();
    let viewer = place.file("viewer.yaml", &viewer).display().to_string();
    let line = ["machine", "dismiss", "nuc1", "--kubeconfig", &viewer];
    show(&place, MachineState::Failed);
    place.write_status(WORKFLOW, "a", json!({ "state": "FAILED" })).await;
    let refused = place.run(&line).await;
    assert_eq!(refused.code, 6, "{refused:?}");
    assert!(refused.err.contains("hint: use a kubeconfig with more rights"), "{refused:?}");
}
