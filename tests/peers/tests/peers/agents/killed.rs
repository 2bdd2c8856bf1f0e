//! Agent, machine or box is killed in every state, and each workflow still ends as expected.

use std::fs;

use peers::poll;
use serde_json::json;
use stdx::testing::PATIENCE;

use super::rack::{Generation, Rack, act, holding};

/// Runs all cases one after the other, with one box that keeps its state.
pub fn each(generation: Generation) {
    let mut rack = Rack::start();
    let agent = [before, running, between, late];
    let of_box = [box_before, box_running, box_between, unreported, both];
    for case in agent.into_iter().chain(of_box) {
        let _ = fs::remove_file(rack.record().join("log"));
        case(&mut rack, generation);
        assert_eq!(rack.docker.containers().unwrap(), [""; 0]);
    }
}

/// Applies a workflow of two holding actions; the names contain the name of the case.
fn apply(rack: &Rack, generation: Generation, name: &str) {
    let actions = ["1", "2"].map(|it| holding(rack, &format!("{name}-{it}")));
    let id = generation.id();
    rack.apply(name, &[json!({ "name": "one", "worker": id, "actions": actions })]);
}

/// Lets both actions continue, and waits until the workflow has succeeded.
fn finish(rack: &Rack, name: &str) {
    rack.go(&format!("{name}-1"));
    rack.go(&format!("{name}-2"));
    rack.wait(name, "SUCCESS");
}

fn lines(name: &str, lines: &[(&str, u8)]) -> Vec<String> {
    lines.iter().map(|(what, action)| format!("{what} {name}-{action}")).collect()
}

const ONCE: [(&str, u8); 4] = [("begin", 1), ("end", 1), ("begin", 2), ("end", 2)];

/// Kills the agent before its first request.
fn before(rack: &mut Rack, generation: Generation) {
    let mut agent = rack.agent(generation, generation.id());
    agent.kill();
    apply(rack, generation, "before");
    rack.wait("before", "PENDING");
    let _agent = rack.agent(generation, generation.id());
    finish(rack, "before");
    assert_eq!(rack.log(), lines("before", &ONCE));
}

/// Cuts the power of the agent's machine while an action runs: the action begins again.
fn running(rack: &mut Rack, generation: Generation) {
    let agent = rack.agent(generation, generation.id());
    apply(rack, generation, "running");
    rack.wait_log("begin running-1", 1);
    rack.cut(agent);
    let agent = rack.agent(generation, generation.id());
    rack.wait_log("begin running-1", 2);
    // The same in the second action: the first is not repeated.
    rack.go("running-1");
    rack.wait_log("begin running-2", 1);
    rack.cut(agent);
    let _agent = rack.agent(generation, generation.id());
    rack.wait_log("begin running-2", 2);
    finish(rack, "running");
    let want = [("begin", 1), ("begin", 1), ("end", 1), ("begin", 2), ("begin", 2), ("end", 2)];
    assert_eq!(rack.log(), lines("running", &want));
}

/// Cuts the power of the agent's machine between two actions; a pause holds this state.
fn between(rack: &mut Rack, generation: Generation) {
    let agent = rack.agent(generation, generation.id());
    apply(rack, generation, "between");
    rack.wait_log("begin between-1", 1);
    rack.pause("between", true);
    rack.go("between-1");
    rack.wait_action("between", "between-1", "SUCCESS");
    rack.cut(agent);
    let _agent = rack.agent(generation, generation.id());
    rack.pause("between", false);
    finish(rack, "between");
    assert_eq!(rack.log(), lines("between", &ONCE));
}

/// Cancels the workflow while an action runs: its late success has no effect, and no further action
/// begins. An older worker then requests permission to begin forever, until its machine is booted
/// again.
fn late(rack: &mut Rack, generation: Generation) {
    let mut agent = rack.agent(generation, generation.id());
    apply(rack, generation, "late");
    rack.wait_log("begin late-1", 1);
    rack.cancel("late");
    rack.wait("late", "FAILED");
    rack.go("late-1");
    rack.wait_log("end late-1", 1);
    if generation == Generation::Older {
        rack.wait_said(generation.id(), "cannot start: its workflow has ended");
        rack.cut(agent);
        agent = rack.agent(generation, generation.id());
    }
    apply(rack, generation, "next");
    finish(rack, "next");
    rack.wait("late", "FAILED");
    let want = [lines("late", &ONCE[..2]), lines("next", &ONCE)].concat();
    assert_eq!(rack.log(), want);
    drop(agent);
}

/// Kills the box while the agent waits for work.
fn box_before(rack: &mut Rack, generation: Generation) {
    apply(rack, generation, "box-before");
    rack.wait("box-before", "PENDING");
    rack.tinboxd.kill();
    let _agent = rack.agent(generation, generation.id());
    rack.tinboxd.restart().unwrap();
    finish(rack, "box-before");
    assert_eq!(rack.log(), lines("box-before", &ONCE));
}

/// Kills the box while an action runs; the action continues.
fn box_running(rack: &mut Rack, generation: Generation) {
    let _agent = rack.agent(generation, generation.id());
    apply(rack, generation, "box-running");
    rack.wait_log("begin box-running-1", 1);
    rack.tinboxd.restart().unwrap();
    rack.go("box-running-1");
    rack.wait_log("begin box-running-2", 1);
    rack.tinboxd.restart().unwrap();
    finish(rack, "box-running");
    assert_eq!(rack.log(), lines("box-running", &ONCE));
}

/// Kills the box between two actions.
fn box_between(rack: &mut Rack, generation: Generation) {
    let _agent = rack.agent(generation, generation.id());
    apply(rack, generation, "box-between");
    rack.wait_log("begin box-between-1", 1);
    rack.pause("box-between", true);
    rack.go("box-between-1");
    rack.wait_action("box-between", "box-between-1", "SUCCESS");
    rack.tinboxd.restart().unwrap();
    rack.pause("box-between", false);
    finish(rack, "box-between");
    assert_eq!(rack.log(), lines("box-between", &ONCE));
}

/// The box is down when an action ends: its agent repeats the report until the box is back.
fn unreported(rack: &mut Rack, generation: Generation) {
    let _agent = rack.agent(generation, generation.id());
    apply(rack, generation, "unreported");
    rack.wait_log("begin unreported-1", 1);
    rack.tinboxd.kill();
    rack.go("unreported-1");
    rack.wait_log("end unreported-1", 1);
    // The agent removes the container before it reports.
    let gone = || rack.docker.containers().unwrap().is_empty();
    poll("the container to be gone", PATIENCE, gone).unwrap();
    rack.tinboxd.restart().unwrap();
    finish(rack, "unreported");
    assert_eq!(rack.log(), lines("unreported", &ONCE));
}

/// Kills the agent and the box after an action ended without a report: the result is lost, and the
/// action is repeated.
fn both(rack: &mut Rack, generation: Generation) {
    let agent = rack.agent(generation, generation.id());
    let id = generation.id();
    let actions = json!([holding(rack, "both-1"), act(rack, "both-2")]);
    rack.apply("both", &[json!({ "name": "one", "worker": id, "actions": actions })]);
    rack.wait_log("begin both-1", 1);
    rack.tinboxd.kill();
    rack.go("both-1");
    rack.wait_log("end both-1", 1);
    rack.cut(agent);
    rack.tinboxd.restart().unwrap();
    let _agent = rack.agent(generation, generation.id());
    finish(rack, "both");
    let want = [("begin", 1), ("end", 1), ("begin", 1), ("end", 1), ("begin", 2), ("end", 2)];
    assert_eq!(rack.log(), lines("both", &want));
}
