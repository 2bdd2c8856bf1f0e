//! Who is found by what, and how far their runs are.

use api::tinkerbell::{ActionStatus, Hardware, State, TaskStatus, Workflow};
use jiff::{SignedDuration, Timestamp};

use super::Index;

fn hardware(name: &str, mac: &str, created_secs: i64) -> Hardware {
    let object = serde_json::json!({
        "metadata": { "name": name, "namespace": "default" },
        "spec": { "interfaces": [{ "dhcp": { "mac": mac, "ip": { "address": "10.0.0.9" } } }] },
    });
    let mut hardware: Hardware = serde_json::from_value(object).unwrap();
    hardware.metadata.creation_timestamp = at(created_secs);
    hardware
}

fn at(secs: i64) -> Option<Timestamp> {
    Timestamp::UNIX_EPOCH.checked_add(SignedDuration::from_secs(secs)).ok()
}

fn workflow(name: &str, state: State, created_secs: i64) -> Workflow {
    let mut workflow = Workflow::default();
    workflow.metadata.namespace = "default".into();
    workflow.metadata.name = name.into();
    workflow.metadata.creation_timestamp = at(created_secs);
    workflow.spec.hardware_ref = "a".into();
    workflow.status.state = state;
    workflow.status.tasks = vec![TaskStatus { agent_id: "x".into(), ..Default::default() }];
    workflow
}

#[test]
fn the_older_of_two_claimants_keeps_the_address() {
    let index = Index::default();
    index.put_hardware(hardware("young", "52:54:00:00:00:01", 2));
    index.put_hardware(hardware("old", "52:54:00:00:00:01", 1));
    let mac = "52:54:00:00:00:01".parse().unwrap();
    assert_eq!(index.by_mac(mac).unwrap().metadata.name, "old");
    let key = index.by_mac(mac).unwrap().key();
    index.remove_hardware(&key);
    assert_eq!(index.by_mac(mac).unwrap().metadata.name, "young");
    assert!(index.by_address("10.0.0.9".parse().unwrap()).is_some());
    assert!(index.by_agent("52:54:00:00:00:01").is_some());
}

#[test]
fn an_instance_id_is_of_one_machine_or_none() {
    let index = Index::default();
    let with_id = |name: &str, uid: &str, id: &str| {
        let mut hardware = hardware(name, "52:54:00:00:00:01", 1);
        hardware.metadata.uid = uid.to_owned();
        let metadata = serde_json::json!({ "instance": { "id": id } });
        hardware.spec.metadata = serde_json::from_value(metadata).unwrap();
        hardware
    };
    index.put_hardware(with_id("a", "1", "i-a"));
    index.put_hardware(with_id("b", "2", ""));
    let name = |id: &str| index.by_instance_id(id).map(|it| it.metadata.name.clone());
    assert_eq!(name("i-a").as_deref(), Some("a"));
    assert_eq!(name("2").as_deref(), Some("b"));
    assert_eq!((name("1"), name("")), (None, None));
    index.put_hardware(with_id("c", "3", "i-a"));
    assert_eq!(name("i-a"), None);
}

#[test]
fn progress_is_of_the_runs_that_count() {
    let index = Index::default();
    let hardware = api::meta::ObjectKey::new("default", "a");
    assert_eq!(index.progress(&hardware), (false, None));
    let mut done = workflow("done", State::Success, 5);
    done.status.tasks[0].actions = [7, 9, 8]
        .map(|secs| ActionStatus { execution_stop: at(secs), ..Default::default() })
        .to_vec();
    index.put_workflow(&done);
    index.put_workflow(&workflow("failed", State::Failed, 20));
    assert_eq!(index.progress(&hardware), (false, at(9)));
    let mut disabled = workflow("disabled", State::Pending, 21);
    disabled.spec.disabled = Some(true);
    index.put_workflow(&disabled);
    assert_eq!(index.progress(&hardware), (false, at(9)));
    index.put_workflow(&workflow("next", State::New, 22));
    assert_eq!(index.progress(&hardware), (true, at(9)));
}

#[test]
fn running_first_then_the_oldest_and_never_an_ended_one() {
    let index = Index::default();
    index.put_workflow(&workflow("ended", State::Success, 0));
    index.put_workflow(&workflow("late", State::Pending, 3));
    index.put_workflow(&workflow("early", State::Pending, 2));
    let names = |index: &Index| -> Vec<String> {
        index.runs_of_agent("x").into_iter().map(|(key, _)| key.name).collect()
    };
    assert_eq!(names(&index), ["early", "late"]);
    index.put_workflow(&workflow("late", State::Running, 3));
    assert_eq!(names(&index), ["late", "early"]);
    let hardware = api::meta::ObjectKey::new("default", "a");
    assert_eq!(index.run_of_hardware(&hardware).unwrap().state, State::Running);
    index.put_workflow(&workflow("late", State::Failed, 3));
    index.remove_workflow(&api::meta::ObjectKey::new("default", "early"));
    assert!(index.run_of_hardware(&hardware).is_none());
}
