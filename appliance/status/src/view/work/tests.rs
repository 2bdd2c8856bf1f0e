use api::tinkerbell::{State, Workflow};
use serde_json::{Value, json};

use super::Work;

fn work(status: Value) -> Work {
    let workflow: Workflow = serde_json::from_value(json!({
        "metadata": { "name": "wf-1", "namespace": "default" },
        "spec": {
            "hardwareRef": "nuc-07", "templateRef": "debian", "retry": { "attempts": 3 },
        },
        "status": status,
    }))
    .unwrap();
    Work::of(&workflow)
}

fn tasks(actions: &[(&str, &str, &str)]) -> Value {
    let action = |(name, state, message): &(&str, &str, &str)| {
        let (start, stop) = ("2026-11-23T14:00:00Z", "2026-11-23T14:01:00Z");
        json!({ "name": name, "state": state, "message": message,
            "executionStart": start, "executionStop": stop })
    };
    json!([{ "name": "one", "actions": actions.iter().map(action).collect::<Vec<_>>() }])
}

fn sentence(status: Value) -> String {
    work(status).trouble.map(|it| it.sentence()).unwrap_or_default()
}

#[test]
fn a_running_one_says_its_action() {
    let actions = [("wipe", "SUCCESS", ""), ("image2disk", "RUNNING", ""), ("x", "PENDING", "")];
    let work = work(json!({ "state": "RUNNING", "tasks": tasks(&actions), "attempts": 2 }));
    assert_eq!((work.step.as_str(), work.done, work.actions), ("image2disk", 1, 3));
    assert_eq!((work.attempt, work.attempts_max, work.trouble), (2, 3, None));
    assert_eq!(work.since.unwrap().to_string(), "2026-11-23T14:00:00Z");
}

#[test]
fn a_boot_says_why_it_is_delayed() {
    let error =
        json!({ "type": "BmcError", "status": "True", "message": "no response: is it on?" });
    let said = sentence(json!({ "state": "PREPARING", "conditions": [error] }));
    let want = "The boot is delayed on nuc-07: no response: is it on? \
                Check the BMC; the box retries automatically.";
    assert_eq!(said, want);
}

#[test]
fn a_queued_workflow_names_the_workflow_ahead() {
    let ahead = json!([{ "type": "Waiting", "status": "True", "reason": "Queued",
        "message": "queued behind wf-0" }]);
    let queued = |state: &str| work(json!({ "state": state, "conditions": ahead })).queued;
    assert_eq!(queued("PREPARING").as_str(), "queued behind wf-0");
    assert!(queued("FAILED").is_empty(), "an ended workflow is not queued");
    assert!(work(json!({ "state": "PREPARING" })).queued.is_empty());
}

fn ended(reason: &str) -> Value {
    json!({
        "time": "2026-11-23T14:02:00Z", "reason": reason, "message": "it ended",
    })
}

#[test]
fn a_failed_one_says_why() {
    let retry = "See its history, fix the cause, then retry it.";
    let cases = [
        (
            "FAILED",
            ("image2disk", "FAILED", "checksum does not match.\nat 12"),
            "ActionFailed",
            "image2disk failed on nuc-07: checksum does not match. ",
        ),
        (
            "TIMEOUT",
            ("slow", "TIMEOUT", ""),
            "ActionTimedOut",
            "slow timed out on nuc-07: it ended. ",
        ),
        ("FAILED", ("never", "PENDING", ""), "BootFailed", "The boot failed on nuc-07: it ended. "),
        (
            "TIMEOUT",
            ("never", "PENDING", ""),
            "TimeRanOut",
            "Workflow wf-1 timed out on nuc-07: it ended. ",
        ),
    ];
    for (state, action, reason, expected) in cases {
        let status = json!({ "state": state, "tasks": tasks(&[action]),
            "ended": ended(reason) });
        assert_eq!(sentence(status.clone()), format!("{expected}{retry}"), "{reason}");
        assert_eq!(work(status).since.unwrap().to_string(), "2026-11-23T14:02:00Z");
    }
}

#[test]
fn a_template_that_makes_none_is_said() {
    let why = json!([{ "type": "TemplateRenderedSuccess", "status": "False",
        "message": "line 3: no such function" }]);
    let work = work(json!({ "templateRendering": "failed", "conditions": why }));
    assert!(work.cannot_begin() && work.state == State::New);
    let sentence = work.trouble.unwrap().sentence();
    assert!(sentence.contains("debian cannot be rendered on nuc-07: line 3: no such"));
}
