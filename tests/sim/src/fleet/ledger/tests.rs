//! Tests of the ledger: a run without a broken rule, and runs that break one rule each.

use bmc::PowerAction;
use serde_json::{Value, json};

use super::{By, Ledger};

fn workflow(state: &str, actions: &[(&str, &str)]) -> Value {
    let actions: Vec<Value> = actions
        .iter()
        .map(|(id, state)| json!({ "id": id, "name": id, "image": "x", "state": state }))
        .collect();
    json!({
        "metadata": { "name": "wf", "namespace": "default" },
        "spec": {},
        "status": { "state": state, "tasks": [
            { "id": "t", "agentID": "agent", "actions": actions },
        ] },
    })
}

/// The agent of the machine's start number `life`.
fn by(life: usize) -> By {
    By { machine: "nuc".to_owned(), agent: "agent".to_owned(), life }
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
            ledger.begins(&by(1), "a", "a");
            ledger.ends("a");
        }
        ledger.committed(&before, &after);
        before = after;
    }
    // The workflow is canceled between the commands for power off and power on.
    ledger.asks("nuc", PowerAction::Off);
    ledger.switched("nuc", PowerAction::Off, true);
    ledger.switched("nuc", PowerAction::On, false);
    ledger.ends_on();
    assert_eq!((ledger.violation(), ledger.begun().len()), (None, 1));
}

#[test]
fn what_must_never_happen_is_noticed() {
    let running = workflow("RUNNING", &[("a", "RUNNING")]);
    let done = workflow("RUNNING", &[("a", "SUCCESS"), ("b", "PENDING")]);
    noticed(|it| it.begins(&by(1), "a", "a"), "no workflow says it runs");
    noticed(|it| it.committed(&running, &done), "is not a success");
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
            it.begins(&by(1), "a", "a");
        },
        "begins a again",
    );
    noticed(
        |it| it.committed(&running, &workflow("RUNNING", &[("a", "PENDING"), ("b", "RUNNING")])),
        "before what comes first",
    );
    let failed = workflow("FAILED", &[("a", "FAILED")]);
    noticed(|it| it.committed(&failed, &running), "in one attempt");
    noticed(|it| it.committed(&running, &workflow("SUCCESS", &[("a", "PENDING")])), "not all");
    noticed(|it| it.committed(&running, &workflow("FAILED", &[("a", "RUNNING")])), "and a runs");
    noticed(|it| it.switched("nuc", PowerAction::On, false), "is switched (On)");
    noticed(
        |it| {
            it.switched("nuc", PowerAction::Off, true);
            it.ends_on();
        },
        "is left without power",
    );
    noticed(
        |it| {
            it.committed(&running, &running);
            it.begins(&By { agent: "other".to_owned(), ..by(1) }, "a", "a");
        },
        "a task of agent agent",
    );
    noticed(
        |it| {
            it.committed(&running, &running);
            [1, 2, 2].into_iter().for_each(|life| it.begins(&by(life), "a", "a"));
        },
        "twice without a restart",
    );
    noticed(
        |it| {
            it.committed(&running, &running);
            it.leaves("nuc", "a");
        },
        "is not stored",
    );
}
