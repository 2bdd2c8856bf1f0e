//! Each thing that must never happen is noticed.

use serde_json::{Value, json};

use super::Ledger;

fn workflow(state: &str, actions: &[(&str, &str)]) -> Value {
    let actions: Vec<Value> = actions
        .iter()
        .map(|(id, state)| json!({ "id": id, "name": id, "image": "x", "state": state }))
        .collect();
    json!({
        "metadata": { "name": "wf", "namespace": "default" },
        "spec": {},
        "status": { "state": state, "tasks": [{ "id": "t", "actions": actions }] },
    })
}

#[track_caller]
fn noticed(act: impl FnOnce(&mut Ledger), words: &str) {
    let mut ledger = Ledger::default();
    act(&mut ledger);
    let violation = ledger.violation().expect("it is noticed");
    assert!(violation.contains(words), "{violation}");
}

#[test]
fn a_good_run_is_none() {
    let mut ledger = Ledger::default();
    let mut before = workflow("PENDING", &[("a", "PENDING")]);
    for (state, action) in [("RUNNING", "RUNNING"), ("RUNNING", "SUCCESS"), ("SUCCESS", "SUCCESS")]
    {
        let after = workflow(state, &[("a", action)]);
        if action == "SUCCESS" && state == "RUNNING" {
            ledger.begins("nuc", "a", "a");
            ledger.ends("a");
        }
        ledger.committed(&before, &after);
        before = after;
    }
    assert_eq!((ledger.violation(), ledger.begun()), (None, 1));
}

#[test]
fn what_must_never_happen_is_noticed() {
    let running = workflow("RUNNING", &[("a", "RUNNING")]);
    let done = workflow("RUNNING", &[("a", "SUCCESS"), ("b", "PENDING")]);
    noticed(|it| it.begins("nuc", "a", "a"), "no workflow says that it runs");
    noticed(|it| it.committed(&running, &done), "is no success");
    noticed(
        |it| {
            it.ends("a");
            it.committed(&running, &done);
            it.committed(&done, &workflow("RUNNING", &[("a", "RUNNING")]));
        },
        "that was lost",
    );
    noticed(
        |it| {
            it.ends("a");
            it.committed(&running, &done);
            it.begins("nuc", "a", "a");
        },
        "begins a again",
    );
    noticed(
        |it| it.committed(&running, &workflow("RUNNING", &[("a", "PENDING"), ("b", "RUNNING")])),
        "before what comes first",
    );
    let failed = workflow("FAILED", &[("a", "FAILED")]);
    noticed(|it| it.committed(&failed, &running), "in one attempt");
    noticed(|it| it.committed(&running, &workflow("SUCCESS", &[("a", "RUNNING")])), "not all");
    noticed(|it| it.switched("nuc", false), "is switched");
}
