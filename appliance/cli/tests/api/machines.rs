//! Tests of `machine power` and `machine history`.

use api::core::ObjectEvent;
use api::tinkerbell::HARDWARE;
use jiff::{SignedDuration, Timestamp};
use resources::{ListOptions, WriteOptions};
use serde_json::json;
use status::boot_event::{BootEvent, Stage};

use crate::place::{NUC1, Outcome, Place, end, until};

const JOB: &str = "bmc.tinkerbell.org/jobs";
const TASK: &str = "bmc.tinkerbell.org/tasks";

async fn rack() -> Place {
    let place = Place::start().await;
    place.file("hardware.yaml", NUC1);
    place.run(&["hardware", "push", "-f", "hardware.yaml"]).await.good();
    place
}

/// Acts as the controller for one Job: ends its Task with `condition` and `message`.
async fn play(place: &Place, condition: &str, message: &str) -> serde_json::Value {
    let job = until(|| async {
        let jobs = place.engine.list(JOB, Some("default"), ListOptions::default()).await;
        jobs.unwrap().items.pop()
    })
    .await;
    let name = job["metadata"]["name"].as_str().unwrap().to_owned();
    let task = json!({
        "metadata": { "name": format!("{name}-task-0") },
        "spec": {
            "task": job["spec"]["tasks"][0],
            "connection": { "host": "10.77.0.21", "insecureTLS": true },
        },
    });
    place.engine.create(TASK, "default", task, WriteOptions::default()).await.unwrap();
    let conditions = json!([{ "type": condition, "status": "True", "message": message }]);
    let status = json!({ "conditions": conditions });
    place.write_status(TASK, &format!("{name}-task-0"), status.clone()).await;
    place.write_status(JOB, &name, status).await;
    job
}

#[tokio::test(flavor = "multi_thread")]
async fn power_is_told_when_it_is_confirmed() {
    let place = rack().await;
    let child = place.spawn(&["machine", "power", "nuc1", "on", "--wait"]);
    let job = play(&place, "Completed", "power is on, confirmed").await;
    assert_eq!(job["spec"]["tasks"], json!([{ "powerAction": "on" }]));
    assert_eq!(job["spec"]["machineRef"], json!({ "name": "bmc-nuc1", "namespace": "default" }));
    assert_eq!(end(child).await.good(), "nuc1: power is on, confirmed\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_leaves_nothing_behind() {
    let place = rack().await;
    let child = place.spawn(&["machine", "power", "status", "--hardware", "52:54:00:77:00:01"]);
    play(&place, "Completed", "power is off").await;
    assert_eq!(end(child).await.good(), "nuc1: power is off\n");
    for resource in [JOB, TASK] {
        let left = place.engine.list(resource, Some("default"), ListOptions::default()).await;
        assert_eq!(left.unwrap().items, Vec::<serde_json::Value>::new());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_ends_with_the_first_error_of_the_bmc() {
    let place = rack().await;
    let child = place.spawn(&["machine", "power", "status", "nuc1"]);
    let job = until(|| async {
        let jobs = place.engine.list(JOB, Some("default"), ListOptions::default()).await;
        jobs.unwrap().items.pop()
    })
    .await;
    let running = json!([{ "type": "Running", "status": "True", "message": "task 0 of 1" }]);
    let name = job["metadata"]["name"].as_str().unwrap();
    place.write_status(JOB, name, json!({ "conditions": running })).await;
    play(&place, "BmcError", "BMC 10.77.0.21:623 did not respond").await;
    let Outcome { code, out, err } = end(child).await;
    assert_eq!((code, out.as_str()), (1, ""));
    let error = "error: power status of nuc1 failed: BMC 10.77.0.21:623 did not respond\n";
    assert!(err.starts_with(error), "the number of the Task is not shown: {err}");
    let left = place.engine.list(JOB, Some("default"), ListOptions::default()).await;
    assert_eq!(left.unwrap().items, Vec::<serde_json::Value>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bmc_that_fails_is_told() {
    let place = rack().await;
    let child = place.spawn(&["machine", "power", "off", "bmc-nuc1", "--yes", "--wait"]);
    play(&place, "Failed", "task 0: 10.77.0.21:623 does not answer").await;
    let Outcome { code, out, err } = end(child).await;
    assert_eq!((code, out.as_str()), (1, ""));
    let error = "error: power off of bmc-nuc1 failed: task 0: 10.77.0.21:623 does not answer\n";
    assert!(err.contains(error), "{err}");
}

async fn record(place: &Place, begin: Timestamp, millis: i64, boot_event: &BootEvent) {
    let happening = ObjectEvent {
        about: HARDWARE,
        namespace: "default".into(),
        name: "nuc1".into(),
        uid: String::new(),
        reason: boot_event.reason().into(),
        message: boot_event.sentence(),
        warning: boot_event.warning(),
        component: "test".into(),
        at: begin + SignedDuration::from_millis(millis),
    };
    let event = happening.to_event(&stdx::random_hex(8));
    place.engine.create("/events", "default", event, WriteOptions::default()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_story_is_told_as_it_happens() {
    let place = rack().await;
    let nothing = place.run(&["machine", "history", "nuc1"]).await;
    assert_eq!((nothing.code, nothing.err.as_str()), (0, "nothing has happened to nuc1 yet\n"));

    let begin = Timestamp::now();
    let stage = Stage::UefiFirmware;
    record(&place, begin, 0, &BootEvent::PoweredOn).await;
    record(&place, begin, 5_400, &BootEvent::AskedForAddress { stage }).await;
    let child = place.spawn(&["machine", "history", "nuc1", "--follow"]);
    let ip = [10, 77, 0, 11].into();
    record(&place, begin, 5_450, &BootEvent::GotAddress { ip, stage }).await;
    record(&place, begin, 12_000, &BootEvent::AgentHello { version: "0.1.0".into() }).await;
    record(&place, begin, 60_300, &BootEvent::PhonedHome { hostname: "nuc1".into() }).await;
    let want = include_str!("../golden/machine-history.txt");
    assert_eq!(end(child).await.good(), want);
    assert_eq!(place.run(&["machine", "history", "10.77.0.11"]).await.good(), want);
    let lines = place.run(&["machine", "history", "nuc1", "-o", "json"]).await.good();
    let lines: serde_json::Value = serde_json::from_str(&lines).unwrap();
    assert_eq!(
        (&lines[2]["reason"], &lines[2]["offsetMillis"]),
        (&"GotAddress".into(), &5450.into())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_story_about_a_running_workflow_does_not_end_with_the_one_before() {
    let place = rack().await;
    let begin = Timestamp::now() - SignedDuration::from_mins(5);
    record(&place, begin, 0, &BootEvent::PoweredOn).await;
    record(&place, begin, 60_000, &BootEvent::PhonedHome { hostname: "nuc1".into() }).await;
    place.file("t.yaml", crate::place::DEBIAN);
    place.run(&["template", "create", "-f", "t.yaml"]).await.good();
    place.run(&["workflow", "create", "-t", "debian", "-r", "nuc1"]).await.good();
    let child = place.spawn(&["machine", "history", "nuc1", "-f"]);
    let (name, message) = ("reboot".into(), "no such disk".into());
    let failed = BootEvent::ActionEnded { name, ok: false, message, millis: 100 };
    record(&place, Timestamp::now(), 1_000, &failed).await;
    let ended = end(child).await;
    assert_eq!(ended.code, 1, "{ended:?}");
    let expected = "0.0 s  action reboot failed after 0.1 s: no such disk\n";
    assert_eq!(ended.out.trim_start(), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_card_is_adopted_where_it_is_nobodys() {
    let place = rack().await;
    let (old, new) = ("52:54:00:77:00:01", "52:54:00:77:00:99");
    let patch = json!({ "spec": { "agentID": old } });
    let options = WriteOptions::default();
    let patch = resources::Patch::Merge(patch);
    place.engine.patch(&hardware(), "default", "nuc1", patch, options).await.unwrap();

    let line = ["machine", "adopt", old, new, "--instead-of", old];
    assert_eq!(place.run(&line).await.good(), "hardware/nuc1 has 52:54:00:77:00:99\n");
    let nuc1 = place.engine.get(&hardware(), "default", "nuc1").await.unwrap();
    assert_eq!(nuc1["spec"]["agentID"], new);
    let interfaces = nuc1["spec"]["interfaces"].as_array().unwrap();
    assert_eq!(interfaces.len(), 1);
    assert_eq!(interfaces[0]["dhcp"]["mac"], new);
    assert_eq!(interfaces[0]["dhcp"]["ip"]["address"], "10.77.0.11", "the address stays");

    let second = "52:54:00:77:00:9a";
    place.run(&["machine", "adopt", "nuc1", second]).await.good();
    let nuc1 = place.engine.get(&hardware(), "default", "nuc1").await.unwrap();
    assert_eq!(nuc1["spec"]["interfaces"][1]["dhcp"]["mac"], second);
    assert_eq!(nuc1["spec"]["interfaces"][1]["netboot"]["allowPXE"], true);

    let Outcome { code, err, .. } = place.run(&["machine", "adopt", "nuc1", second]).await;
    assert_eq!(code, 1);
    assert!(err.contains("52:54:00:77:00:9a is already a MAC of nuc1"), "{err}");
    let Outcome { code, err, .. } =
        place.run(&["machine", "adopt", "nuc1", "52:54:00:77:00:9b", "--instead-of", old]).await;
    assert_eq!(code, 1);
    assert!(err.contains("it has no interface with 52:54:00:77:00:01"), "{err}");
    assert!(err.contains("hint: `tinbox hardware list`"), "{err}");
    let Outcome { code, err, .. } = place.run(&["machine", "adopt", "nuc9", second]).await;
    assert_eq!(code, 3);
    assert!(err.contains("nuc9"), "{err}");
    let after = place.engine.get(&hardware(), "default", "nuc1").await.unwrap();
    assert_eq!(after, nuc1, "what is refused changes nothing");
}

fn hardware() -> String {
    format!("{}/{}", HARDWARE.group, HARDWARE.plural)
}
