use api::tinkerbell::Workflow;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Feed, rows, table, why};

fn now() -> Timestamp {
    "2026-01-01T00:01:00Z".parse().unwrap()
}

fn workflow(state: &str, actions: &[(&str, &str, Value)]) -> Workflow {
    let actions: Vec<Value> = actions
        .iter()
        .map(|(name, state, more)| {
            let mut action = json!({ "id": name, "name": name, "state": state, "timeout": 60 });
            for (key, value) in more.as_object().into_iter().flatten() {
                action[key] = value.clone();
            }
            action
        })
        .collect();
    let tasks =
        json!([{ "name": "os-install", "agentID": "52:54:00:77:00:01", "actions": actions }]);
    let status = json!({ "state": state, "tasks": tasks });
    serde_json::from_value(json!({ "metadata": { "name": "a" }, "status": status })).unwrap()
}

fn half() -> Workflow {
    let times = |stop: Value| {
        json!({ "executionStart": "2026-01-01T00:00:00Z", "executionStop": stop,
                "executionDuration": "41s", "message": "wrote 300 MiB\n\u{1b}[2J" })
    };
    let done = times(json!("2026-01-01T00:00:41Z"));
    let running = json!({ "executionStart": "2026-01-01T00:00:55Z" });
    workflow(
        "RUNNING",
        &[
            ("stream-image", "SUCCESS", done),
            ("write-netplan", "RUNNING", running),
            ("reboot", "PENDING", json!({})),
        ],
    )
}

#[test]
fn the_table_of_events() {
    let text = table(&rows(&half(), now())).render(false);
    golden::check("workflow-events.txt", &text);
    assert!(!table(&rows(&half(), now())).brief().render(false).contains("WORKER ID"));
}

#[test]
fn following_tells_each_action_twice() {
    let mut feed = Feed::new(false);
    let mut printed = Vec::new();
    let steps = [
        workflow("PENDING", &[("image", "PENDING", json!({})), ("reboot", "PENDING", json!({}))]),
        workflow("RUNNING", &[("image", "RUNNING", json!({})), ("reboot", "PENDING", json!({}))]),
        workflow("RUNNING", &[("image", "RUNNING", json!({})), ("reboot", "PENDING", json!({}))]),
        workflow("RUNNING", &[("image", "SUCCESS", json!({})), ("reboot", "RUNNING", json!({}))]),
        workflow("SUCCESS", &[("image", "SUCCESS", json!({})), ("reboot", "SUCCESS", json!({}))]),
    ];
    for step in steps {
        printed.extend(feed.lines(&step, now()));
    }
    golden::check("workflow-follow.txt", &(printed.join("\n") + "\n"));
}

#[test]
fn a_failure_says_why() {
    let sha = json!({ "message": "sha256 of the image is 00, expected ff" });
    let failed = workflow("FAILED", &[("image", "FAILED", sha)]);
    assert_eq!(why(&failed), "action image: sha256 of the image is 00, expected ff");
    let slow = workflow("TIMEOUT", &[("image", "TIMEOUT", json!({}))]);
    assert_eq!(why(&slow), "action image: timed out after 60 s");
    let mut whole = workflow("TIMEOUT", &[("image", "RUNNING", json!({}))]);
    whole.status.global_timeout = 3600;
    assert_eq!(why(&whole), "the workflow timed out after 3600 s");
    let mut boot = workflow("FAILED", &[]);
    assert_eq!(why(&boot), "the box gave no reason");
    boot.status.conditions.push(api::tinkerbell::Condition {
        kind: "BootJobFailed".into(),
        status: "True".into(),
        reason: "Error".into(),
        message: "boot job netboot-a: the BMC does not answer".into(),
        time: None,
    });
    assert_eq!(why(&boot), "boot job netboot-a: the BMC does not answer");
}
