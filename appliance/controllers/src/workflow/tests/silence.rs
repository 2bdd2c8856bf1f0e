//! Tests of machines whose agents are silent.

use api::bmc::{JOB, MACHINE, TASK};
use jiff::SignedDuration;
use serde_json::json;
use stdx::Clock as _;

use super::{World, at_work, netboot};

impl World {
    /// Creates a workflow with a machine that the box booted.
    async fn booted() -> Self {
        let world = Self::new(netboot());
        world.settle().await;
        world.end_job("netboot-wf", "Completed").await;
        world.settle().await;
        world
    }

    /// Creates a workflow with a booted machine whose agent runs an action.
    async fn working() -> Self {
        let world = Self::booted().await;
        world.advance(10);
        world.hear();
        world.set_status(at_work).await;
        world
    }

    /// Sets the power state that the machine's BMC reports.
    fn bmc(&self, power: &str) {
        self.memory.put(
            MACHINE,
            json!({
                "metadata": { "name": "bmc1", "namespace": "default" },
                "status": { "powerState": power },
            }),
        );
    }
}

#[tokio::test]
async fn a_silent_machine_is_booted_again_a_few_times() {
    let world = World::working().await;
    world.advance(59);
    world.settle().await;
    assert_eq!(world.memory.names(JOB), ["netboot-wf"]);
    world.advance(2);
    for boot in 2..=4 {
        world.settle().await;
        let name = format!("netboot-wf-uid2-{boot}");
        assert!(world.memory.names(JOB).contains(&name), "{boot}");
        world.end_job(&name, "Completed").await;
        world.settle().await;
        assert_eq!(world.memory.names(JOB).len(), boot, "it is given the time of a boot");
        world.advance(301);
    }
    world.settle().await;
    assert_eq!(world.state(), "FAILED");
}

#[tokio::test]
async fn an_agent_that_comes_back_in_time_is_not_booted_again() {
    let world = World::working().await;
    world.advance(61);
    world.settle().await;
    let mut job = world.memory.peek(JOB, "netboot-wf-uid2-2").unwrap();
    job["metadata"]["creationTimestamp"] = json!(world.clock.now());
    world.memory.put(JOB, job);
    world.advance(1);
    world.hear();
    world.settle().await;
    assert_eq!(world.memory.names(JOB), ["netboot-wf"], "the second boot is called off");
    assert_eq!(world.state(), "RUNNING");
}

#[tokio::test]
async fn silence_says_nothing_while_the_bmc_is_silent_too() {
    let world = World::booted().await;
    world.bmc("unknown");
    world.advance(3600);
    world.settle().await;
    assert_eq!(world.memory.names(JOB), ["netboot-wf"]);
    assert!(world.has_condition("Unreachable"), "it says what it waits for");
    world.bmc("on");
    world.settle().await;
    assert!(!world.has_condition("Unreachable"));
    assert_eq!(world.memory.names(JOB).len(), 2, "its machine is booted again");
}

#[tokio::test]
async fn a_machine_that_stays_unreachable_ends_its_workflow() {
    let world = World::booted().await;
    world.bmc("unknown");
    world.advance(71 * 3600);
    world.settle().await;
    assert_eq!(world.state(), "PENDING");
    world.advance(2 * 3600);
    world.settle().await;
    assert_eq!(world.state(), "TIMEOUT");
    assert_eq!(world.workflow()["status"]["ended"]["reason"], "AgentLost");
    assert_eq!(world.memory.names(JOB), ["netboot-wf"]);
}

#[tokio::test]
async fn a_clock_that_is_set_makes_no_agent_silent() {
    for hours in [8, -8, 24 * 365 * 30] {
        let world = World::new(netboot());
        world.advance(100_000);
        world.settle().await;
        world.end_job("netboot-wf", "Completed").await;
        world.settle().await;
        // The first case is a machine in its firmware, the second one a machine that runs an
        // action.
        world.clock.set(SignedDuration::from_hours(hours));
        world.settle().await;
        world.advance(100);
        world.hear();
        world.set_status(at_work).await;
        world.settle().await;
        world.clock.set(SignedDuration::from_hours(hours));
        world.settle().await;
        world.advance(59);
        world.settle().await;
        assert_eq!(world.memory.names(JOB), ["netboot-wf"], "{hours} h");
        world.advance(2);
        world.settle().await;
        assert_eq!(world.memory.names(JOB).len(), 2, "{hours} h: it has been silent for 61 s");
    }
}

/// The clock is set between the end of a boot Job and the first observation of this end.
#[tokio::test]
async fn a_clock_that_is_set_makes_no_boot_old() {
    let world = World::new(netboot());
    world.advance(100_000);
    world.settle().await;
    world.end_job("netboot-wf", "Completed").await;
    world.clock.set(SignedDuration::from_hours(8));
    world.settle().await;
    world.advance(299);
    world.settle().await;
    assert_eq!(world.memory.names(JOB), ["netboot-wf"]);
}

#[tokio::test]
async fn an_agent_without_a_record_may_have_been_heard_until_others_were_forgotten() {
    let world = World::booted().await;
    world.set_status(at_work).await;
    for _ in 0..10 {
        world.advance(299);
        world.agents.0.lock().unwrap().listening_since = world.clock.steady();
        world.settle().await;
    }
    assert_eq!(world.memory.names(JOB), ["netboot-wf"]);
}

#[tokio::test]
async fn a_boot_that_switched_the_machine_off_is_not_called_off() {
    for (message, jobs) in [("begun", 1), ("power off sent", 2)] {
        let world = World::working().await;
        world.advance(61);
        world.settle().await;
        let mut job = world.memory.peek(JOB, "netboot-wf-uid2-2").unwrap();
        job["metadata"]["creationTimestamp"] = json!(world.clock.now());
        let owner = json!({ "kind": "Job", "uid": job["metadata"]["uid"] });
        world.memory.put(
            TASK,
            json!({
                "metadata": {
                    "name": "netboot-wf-uid2-2-task-0",
                    "namespace": "default",
                    "ownerReferences": [owner],
                },
                "spec": { "task": job["spec"]["tasks"][0], "connection": {} },
                "status": {
                    "conditions": [{ "type": "Running", "status": "True", "message": message }],
                },
            }),
        );
        world.memory.put(JOB, job);
        world.advance(1);
        world.hear();
        world.settle().await;
        assert_eq!(world.memory.names(JOB).len(), jobs, "{message}");
    }
}

#[tokio::test]
async fn an_agent_that_does_not_beat_is_left_alone() {
    let world = World::booted().await;
    world.hear();
    world.agents.0.lock().unwrap().beats = false;
    world.set_status(at_work).await;
    world.advance(3600);
    world.settle().await;
    assert_eq!(world.memory.names(JOB), ["netboot-wf"]);
}

impl World {
    /// Sets the number of running actions, and records a message of another agent now.
    fn others(&self, at_work: usize) {
        let mut life = self.agents.0.lock().unwrap();
        (life.at_work, life.any_heard) = (at_work, self.clock.steady());
    }

    /// Creates a workflow with a running action, in a rack with five running actions.
    async fn of_a_busy_rack() -> Self {
        let world = Self::working().await;
        world.others(5);
        world
    }
}

#[tokio::test]
async fn silence_of_all_agents_at_once_touches_no_machine() {
    let world = World::of_a_busy_rack().await;
    world.bmc("on");
    world.advance(61);
    world.settle().await;
    world.advance(29 * 60);
    world.settle().await;
    assert_eq!(world.memory.names(JOB), ["netboot-wf"]);
    assert_eq!(world.condition("Unreachable")["reason"], "AllSilent");
    // Another agent sends a message, so this machine is handled separately.
    world.others(5);
    world.settle().await;
    assert!(!world.has_condition("Unreachable"));
    assert_eq!(world.memory.names(JOB).len(), 2);
}

#[tokio::test]
async fn machines_that_are_off_or_stay_silent_are_booted_in_the_end() {
    let world = World::of_a_busy_rack().await;
    world.bmc("off");
    world.advance(61);
    world.settle().await;
    assert_eq!(world.memory.names(JOB).len(), 2, "it is off: that is seen");

    let world = World::of_a_busy_rack().await;
    world.bmc("on");
    world.advance(61 + 30 * 60);
    world.settle().await;
    assert_eq!(world.memory.names(JOB).len(), 2, "all of them may hang");

    let world = World::of_a_busy_rack().await;
    world.others(1);
    world.advance(61);
    world.settle().await;
    assert_eq!(world.memory.names(JOB).len(), 2, "one alone is not all");
}

#[tokio::test]
async fn silence_of_all_agents_ends_no_workflow_of_a_machine_that_others_boot() {
    let world = World::new(json!({}));
    world.settle().await;
    world.hear();
    world.set_status(at_work).await;
    world.others(5);
    world.advance(301);
    world.settle().await;
    assert_eq!(world.state(), "RUNNING");
    assert_eq!(world.condition("Unreachable")["reason"], "AllSilent");
    world.others(5);
    world.settle().await;
    assert_eq!(world.workflow()["status"]["ended"]["reason"], "AgentLost");
}
