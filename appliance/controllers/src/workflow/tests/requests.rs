//! Tests of retry, cancel and pause, and of their effects on the machine.

use api::bmc::JOB;
use api::tinkerbell::{HARDWARE, TEMPLATE, WORKFLOW};
use serde_json::{Value, json};

use super::{World, netboot};
use objects::Objects as _;

impl World {
    /// Sets an annotation as `kubectl annotate` does. The engine writes metadata and spec together.
    fn annotate(&self, key: &str, value: &str) {
        let mut workflow = self.workflow();
        workflow["metadata"]["annotations"][key] = json!(value);
        self.memory.put(WORKFLOW, workflow);
    }

    fn set_spec(&self, change: impl FnOnce(&mut Value)) {
        let mut workflow = self.workflow();
        change(&mut workflow["spec"]);
        self.memory.put(WORKFLOW, workflow);
    }

    /// Reports the state of the first action as its agent does.
    async fn report(&self, state: api::tinkerbell::ActionState) {
        let mut workflow: api::tinkerbell::Workflow =
            serde_json::from_value(self.workflow()).unwrap();
        let task = &workflow.status.tasks[0];
        let report = api::state::report::Report {
            agent_id: task.agent_id.clone(),
            task_id: task.id.clone(),
            action_id: task.actions[0].id.clone(),
            state,
            message: "because".to_owned(),
            ..Default::default()
        };
        let now = stdx::Clock::now(&self.clock);
        api::state::report::take(&mut workflow.status, &report, now).unwrap();
        let status = serde_json::to_value(&workflow.status).unwrap();
        self.set_status(|it| *it = status).await;
    }

    async fn run_and_fail(&self) {
        use api::tinkerbell::ActionState::{Failed, Running};
        self.report(Running).await;
        self.report(Failed).await;
        self.settle().await;
    }

    /// Creates a workflow with a booted machine whose first action has begun.
    async fn at_work(options: Value) -> Self {
        let world = World::new(options);
        world.settle().await;
        for job in world.memory.names(JOB) {
            world.end_job(&job, "Completed").await;
        }
        world.settle().await;
        world.hear();
        world.report(api::tinkerbell::ActionState::Running).await;
        world
    }
}

#[tokio::test]
async fn a_retry_is_done_once_and_its_machine_permitted_to_boot_again() {
    let world = World::at_work(netboot()).await;
    world.report(api::tinkerbell::ActionState::Failed).await;
    world.settle().await;
    assert_eq!((world.state().as_str(), world.allow_pxe()), ("FAILED", json!(false)));
    assert_eq!(world.condition("TidiedUp")["status"], "True");

    world.annotate("tinbox.dev/retry", "1");
    world.settle().await;
    let status = world.workflow()["status"].clone();
    assert_eq!((status["state"].as_str(), &status["attempts"]), (Some("PREPARING"), &json!(2)));
    assert_eq!(status["history"][0]["message"], "action stream: because");
    assert_eq!(world.allow_pxe(), true);
    assert!(!world.has_condition("TidiedUp"));
    assert!(world.memory.names(JOB).is_empty(), "its agent may still be there");

    // The agent sends a request, so the machine is not booted again.
    world.advance(3);
    world.hear();
    world.settle().await;
    assert_eq!(world.state(), "PENDING");
    assert!(world.memory.names(JOB).is_empty());
    world.run_and_fail().await;
    assert_eq!(world.state(), "FAILED", "the same request is not answered again");
}

#[tokio::test]
async fn a_retry_boots_a_machine_whose_agent_is_gone() {
    let world = World::at_work(netboot()).await;
    world.report(api::tinkerbell::ActionState::Failed).await;
    world.settle().await;
    world.advance(3600);
    world.annotate("tinbox.dev/retry", "1");
    world.settle().await;
    assert!(world.memory.names(JOB).is_empty());
    world.advance(16);
    world.settle().await;
    assert_eq!(world.memory.names(JOB), ["netboot-wf"]);
    let job = world.memory.peek(JOB, "netboot-wf").unwrap();
    assert!(job.get("status").is_none(), "the Job of the first attempt is gone: {job}");
    world.end_job("netboot-wf", "Completed").await;
    world.settle().await;
    assert_eq!(world.state(), "PENDING");
}

#[tokio::test]
async fn the_policy_retries_with_growing_waits_and_then_gives_up() {
    let world = World::new(json!({}));
    world.set_spec(|spec| spec["retry"] = json!({ "attempts": 3, "backoffSeconds": 20 }));
    world.settle().await;
    for wait in [20, 40] {
        world.run_and_fail().await;
        assert_eq!(world.state(), "FAILED");
        assert_eq!(world.condition("Retrying")["reason"], "Backoff");
        world.advance(wait - 1);
        world.settle().await;
        assert_eq!(world.state(), "FAILED");
        world.advance(1);
        world.settle().await;
        assert_eq!(world.state(), "PENDING", "after {wait} s");
        assert!(!world.has_condition("Retrying"));
    }
    world.run_and_fail().await;
    world.advance(36_000);
    world.settle().await;
    assert_eq!(world.state(), "FAILED");
    assert_eq!(world.workflow()["status"]["attempts"], 3);
    // A user may still request another attempt.
    world.annotate("tinbox.dev/retry", "please");
    world.annotate("tinbox.dev/retry-from", "start");
    world.settle().await;
    assert_eq!(world.state(), "PENDING");
}

#[tokio::test]
async fn a_retry_from_the_start_reads_the_template_as_it_is_then() {
    let world = World::new(json!({}));
    world.settle().await;
    world.run_and_fail().await;
    let mended = super::TEMPLATE_TEXT.replace("name: stream", "name: mended");
    let template = |data: &str| {
        let metadata = json!({ "name": "install", "namespace": "default" });
        world.memory.put(TEMPLATE, json!({ "metadata": metadata, "spec": { "data": data } }));
    };
    template(&mended);
    let action = || world.workflow()["status"]["tasks"][0]["actions"][0]["name"].clone();

    world.annotate("tinbox.dev/retry", "1");
    world.settle().await;
    assert_eq!((world.state().as_str(), action()), ("PENDING", json!("stream")), "from the failed");
    world.run_and_fail().await;

    template("{{ .nobody }}");
    world.annotate("tinbox.dev/retry-from", "start");
    world.annotate("tinbox.dev/retry", "2");
    world.settle().await;
    assert_eq!(world.state(), "", "what cannot be rendered waits, as at first");
    assert_eq!(world.condition("TemplateRenderedSuccess")["status"], "False");
    template(&mended);
    world.settle().await;
    assert_eq!((world.state().as_str(), action()), ("PENDING", json!("mended")));
    assert_eq!(world.workflow()["status"]["attempts"], 3);
}

#[tokio::test]
async fn a_disabled_workflow_is_cancelled_and_says_that_it_is_not_retried() {
    let world = World::new(json!({}));
    world.settle().await;
    world.set_spec(|spec| spec["disabled"] = json!(true));
    world.annotate("tinbox.dev/cancel", "1");
    world.settle().await;
    assert_eq!(world.state(), "FAILED");
    world.annotate("tinbox.dev/retry", "1");
    world.settle().await;
    assert_eq!(world.state(), "FAILED");
    assert_eq!(world.workflow()["status"]["requests"]["retry"], "1", "it was answered");
    let events = world.memory.happenings.lock().unwrap();
    let message = &events.last().unwrap().message;
    assert!(message.contains("the workflow is disabled"), "{message}");
}

#[tokio::test]
async fn a_workflow_that_runs_or_succeeded_is_not_retried() {
    let world = World::at_work(netboot()).await;
    world.annotate("tinbox.dev/retry", "1");
    world.settle().await;
    assert_eq!(world.workflow()["status"]["requests"]["retry"], "1");
    assert_eq!(world.state(), "RUNNING");
    world.report(api::tinkerbell::ActionState::Failed).await;
    world.settle().await;
    assert_eq!(world.state(), "FAILED", "the request was for then, not for later");
    let events = world.memory.happenings.lock().unwrap();
    assert_eq!(events.iter().filter(|it| it.reason == "NothingToRetry").count(), 1);
}

#[tokio::test]
async fn a_cancel_fails_it_tidies_up_and_is_not_undone_by_a_policy() {
    let world = World::at_work(netboot()).await;
    world.set_spec(|spec| spec["retry"] = json!({ "attempts": 5 }));
    world.annotate("tinbox.dev/cancel", "7");
    world.settle().await;
    let status = world.workflow()["status"].clone();
    assert_eq!(status["state"], "FAILED");
    assert_eq!(world.condition("Cancelled")["status"], "True");
    assert_eq!(status["tasks"][0]["actions"][0]["state"], "FAILED");
    assert_eq!(world.allow_pxe(), false);
    world.advance(36_000);
    world.settle().await;
    assert_eq!(world.state(), "FAILED");
    world.report(api::tinkerbell::ActionState::Success).await;
    assert_eq!(world.state(), "FAILED", "late success of a cancelled action");
    world.annotate("tinbox.dev/retry", "8");
    world.settle().await;
    assert_eq!(world.state(), "PREPARING");
    assert!(!world.has_condition("Cancelled"));
}

#[tokio::test]
async fn a_pause_holds_what_is_new_and_the_global_clock() {
    let world = World::at_work(json!({})).await;
    world.set_spec(|spec| spec["paused"] = json!(true));
    world.settle().await;
    assert_eq!(world.condition("Paused")["status"], "True");
    world.advance(3600);
    world.hear();
    world.set_spec(|spec| spec["retry"] = json!({ "attempts": 2 }));
    let mut workflow = world.workflow();
    workflow["status"]["tasks"][0]["actions"][0]["deadline"] = Value::Null;
    world.set_status(|status| *status = workflow["status"].take()).await;
    world.settle().await;
    assert_eq!(world.state(), "RUNNING", "600 s were over long ago");
    world.set_spec(|spec| spec["paused"] = json!(false));
    world.settle().await;
    assert!(!world.has_condition("Paused"));
    assert_eq!(world.state(), "RUNNING");
    world.advance(599);
    world.hear();
    world.settle().await;
    assert_eq!(world.state(), "RUNNING");
    world.advance(1);
    world.settle().await;
    assert_eq!(world.state(), "TIMEOUT");
}

#[tokio::test]
async fn an_action_that_never_ends_is_ended_by_the_box() {
    let world = World::at_work(json!({})).await;
    world.settle().await;
    world.advance(119);
    world.hear();
    world.settle().await;
    assert_eq!(world.state(), "RUNNING", "60 s of its own and as many to report");
    world.advance(1);
    world.settle().await;
    assert_eq!(world.state(), "TIMEOUT");
    let message = world.workflow()["status"]["ended"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("timed out after 60 s; agent 52:54:00:77:00:01 was last seen 1 s"));
}

#[tokio::test]
async fn a_machine_that_died_at_work_and_cannot_be_booted_is_said_so() {
    let world = World::at_work(json!({})).await;
    let mut workflow = world.workflow();
    workflow["status"]["tasks"][0]["actions"][0]["deadline"] = Value::Null;
    workflow["status"]["globalExecutionStop"] = Value::Null;
    world.set_status(|status| *status = workflow["status"].take()).await;
    world.advance(299);
    world.settle().await;
    assert_eq!(world.state(), "RUNNING", "somebody may switch it on");
    world.advance(1);
    world.settle().await;
    assert_eq!(world.state(), "TIMEOUT");
    let ended = &world.workflow()["status"]["ended"];
    assert_eq!(ended["reason"], "AgentLost", "{ended}");
}

#[tokio::test]
async fn post_actions_follow_a_failure_too_and_once() {
    let world = World::at_work(json!({
        "bootMode": "customboot",
        "custombootConfig": {
            "preparingActions": [{ "powerAction": "on" }],
            "postActions": [{ "powerAction": "off" }],
        },
    }))
    .await;
    assert_eq!(world.memory.names(JOB), ["customboot-preparing-wf"]);
    world.report(api::tinkerbell::ActionState::Failed).await;
    world.settle().await;
    assert_eq!(world.state(), "FAILED");
    assert!(world.memory.names(JOB).contains(&"customboot-post-wf".to_owned()));
    assert!(!world.has_condition("TidiedUp"), "not before it is done");
    world.end_job("customboot-post-wf", "Failed").await;
    world.settle().await;
    let condition = world.condition("TidiedUp");
    assert_eq!((&condition["status"], &condition["reason"]), (&json!("False"), &json!("Error")));
    world
        .memory
        .delete(JOB, &api::meta::ObjectKey::new("default", "customboot-post-wf"))
        .await
        .unwrap();
    world.settle().await;
    assert_eq!(world.memory.names(JOB), ["customboot-preparing-wf"], "it is not done twice");
}

#[tokio::test]
async fn what_never_booted_its_machine_does_not_touch_it_after() {
    let world = World::new(json!({
        "bootMode": "customboot",
        "custombootConfig": { "postActions": [{ "powerAction": "off" }] },
    }));
    let mut hardware = world.memory.peek(HARDWARE, "nuc1").unwrap();
    hardware["spec"]["bmcRef"] = Value::Null;
    world.memory.update(HARDWARE, hardware).await.unwrap();
    world.settle().await;
    assert_eq!(world.state(), "FAILED");
    assert!(world.memory.names(JOB).is_empty());
}

#[tokio::test]
async fn without_boot_options_too_the_oldest_is_first() {
    let world = World::new(json!({}));
    world.memory.put(
        WORKFLOW,
        json!({
            "metadata": { "name": "a-first", "namespace": "default" },
            "spec": { "hardwareRef": "nuc1" },
            "status": { "state": "PENDING" },
        }),
    );
    world.settle().await;
    assert_eq!(world.state(), "PENDING");
    assert!(world.condition("Waiting")["message"].as_str().unwrap().contains("a-first"));
    // The result is the same with a list of the machine's workflows, some of them deleted.
    let known = ["a-first", "gone", "wf"].map(|name| api::meta::ObjectKey::new("default", name));
    *world.agents.1.lock().unwrap() = Some(known.to_vec());
    world.settle().await;
    assert!(world.condition("Waiting")["message"].as_str().unwrap().contains("a-first"));
    world.memory.delete(WORKFLOW, &api::meta::ObjectKey::new("default", "a-first")).await.unwrap();
    world.settle().await;
    assert!(!world.has_condition("Waiting"));
}
