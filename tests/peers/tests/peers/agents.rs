//! Stock Tinkerbell agents run whole workflows against the box: tink-agent, and tink-worker of the
//! protocol before it, unmodified, with a real Docker engine and a registry.

mod killed;
pub mod rack;
mod retried;
mod whole;

use rack::{Generation, Rack, act};
use serde_json::json;

#[test]
fn tink_agent_runs_a_workflow() {
    whole::workflow(Generation::Today);
}

#[test]
fn tink_worker_runs_a_workflow() {
    whole::workflow(Generation::Older);
}

#[test]
fn tink_agent_fails() {
    whole::failures(Generation::Today);
}

#[test]
fn tink_worker_fails() {
    whole::failures(Generation::Older);
}

#[test]
fn tink_agent_succeeds_at_the_third_attempt() {
    retried::third_time(Generation::Today);
}

#[test]
fn tink_agent_and_the_box_are_killed() {
    killed::each(Generation::Today);
}

#[test]
fn tink_worker_and_the_box_are_killed() {
    killed::each(Generation::Older);
}

#[test]
fn both_generations_share_a_workflow() {
    let rack = Rack::start();
    let _older = rack.agent(Generation::Older, "older");
    let _today = rack.agent(Generation::Today, "today");
    let task = |name: &str, worker: &str, action: &str| {
        let actions = [act(&rack, action)];
        json!({ "name": name, "worker": worker, "actions": actions })
    };
    let there = [task("t1", "older", "a"), task("t2", "today", "b")];
    rack.apply("there", &there);
    rack.wait("there", "SUCCESS");
    // An older worker fetches the whole list once, and begins its second task after the other
    // agent's task.
    let back = [task("t1", "older", "c"), task("t2", "today", "d"), task("t3", "older", "e")];
    rack.apply("back", &back);
    rack.wait("back", "SUCCESS");
    let again = [task("t1", "today", "f"), task("t2", "older", "g"), task("t3", "today", "h")];
    rack.apply("again", &again);
    rack.wait("again", "SUCCESS");
    let each = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let want: Vec<String> =
        each.iter().flat_map(|it| [format!("begin {it}"), format!("end {it}")]).collect();
    assert_eq!(rack.log(), want);
}
