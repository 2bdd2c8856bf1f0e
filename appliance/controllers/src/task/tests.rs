mod sighted;

use std::sync::Arc;
use std::time::Duration;

use api::bmc::{JOB, MACHINE, TASK};
use api::core::SECRET;
use api::meta::ObjectKey;
use bmc::fake::{Call, Failure, Fake, Mode};
use bmc::{Driver, Endpoint, Power, PowerAction};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use stdx::TestClock;

use super::{ShownErrors, TaskReconciler};
use crate::ages::Ages;
use crate::machine::{Drivers, MachineReconciler, Polls, QueuedDrivers};
use crate::runtime::{Reconciler, Requeue};
use objects::Objects as _;
use objects::fake::Memory;

struct One(Fake);

impl Drivers for One {
    fn open(&self, _endpoint: Endpoint) -> Arc<dyn Driver> {
        Arc::new(self.0.clone())
    }
}

struct World {
    memory: Arc<Memory>,
    fake: Fake,
    drivers: Arc<QueuedDrivers>,
    clock: TestClock,
    key: ObjectKey,
}

impl World {
    fn new(action: Value, power: Power) -> Self {
        let memory = Arc::new(Memory::default());
        memory.put(
            SECRET,
            json!({
                "metadata": { "name": "bmc", "namespace": "default" },
                "data": { "username": "YWRtaW4=", "password": "c2VjcmV0" },
            }),
        );
        let key = memory.put(
            TASK,
            json!({
                "metadata": { "name": "t", "namespace": "default" },
                "spec": {
                    "task": action,
                    "connection": { "host": "x", "authSecretRef": { "name": "bmc" } },
                },
            }),
        );
        let clock = TestClock::at(Timestamp::UNIX_EPOCH);
        let fake = Fake::new(power);
        let drivers = QueuedDrivers::new(Arc::new(One(fake.clone())), Arc::new(clock.clone()));
        Self { memory, fake, drivers: Arc::new(drivers), clock, key }
    }

    /// Runs a new reconciler each time, as after a restart.
    async fn once(&self) -> Requeue {
        let reconciler = TaskReconciler {
            objects: self.memory.clone(),
            drivers: self.drivers.clone(),
            clock: Arc::new(self.clock.clone()),
            ages: Ages::default(),
            shown: ShownErrors::default(),
        };
        reconciler.reconcile(&self.key).await.unwrap()
    }

    /// Gives the Task an owner: a Job with this metadata.
    fn of_job(&self, mut metadata: Value) {
        metadata["name"] = json!("j");
        metadata["namespace"] = json!("default");
        metadata["uid"] = json!("job");
        self.memory.put(JOB, json!({ "metadata": metadata, "spec": {} }));
        let mut task = self.memory.peek(TASK, "t").unwrap();
        let owner = json!({ "kind": "Job", "name": "j", "uid": "job" });
        task["metadata"]["ownerReferences"] = json!([owner]);
        self.memory.put(TASK, task);
    }

    /// Returns the message of the last condition.
    fn message(&self) -> String {
        let task = self.memory.peek(TASK, "t").unwrap();
        let last = task["status"]["conditions"].as_array().and_then(|all| all.last());
        last.and_then(|it| it["message"].as_str()).unwrap_or_default().to_owned()
    }

    fn conditions(&self) -> Vec<String> {
        let task = self.memory.peek(TASK, "t").unwrap();
        let conditions = task["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.iter().map(|it| it["type"].as_str().unwrap().to_owned()).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn off_is_confirmed_and_written_down_before_it_is_sent() {
    let world = World::new(json!({ "powerAction": "off" }), Power::On);
    world.once().await;
    assert!(world.fake.calls().is_empty(), "nothing is sent before the start is durable");
    assert_eq!(world.conditions(), ["Running"]);
    world.once().await;
    assert_eq!(world.fake.actions(), [PowerAction::Off]);
    assert_eq!(world.fake.calls().last(), Some(&Call::Power), "the state was read back");
    assert_eq!(world.conditions(), ["Completed"]);
}

#[tokio::test(start_paused = true)]
async fn a_bmc_without_a_driver_is_sent_nothing() {
    let world = World::new(json!({ "powerAction": "off" }), Power::On);
    let mut task = world.memory.peek(TASK, "t").unwrap();
    task["spec"]["connection"]["providerOptions"] = json!({ "preferredOrder": ["dell"] });
    world.memory.put(TASK, task);
    world.once().await;
    world.once().await;
    assert!(world.fake.calls().is_empty());
    assert_eq!(world.conditions(), ["Failed"]);
    assert!(world.message().contains("the driver dell"), "{}", world.message());
}

#[tokio::test(start_paused = true)]
async fn on_and_off_do_nothing_where_nothing_is_to_be_done() {
    let world = World::new(json!({ "powerAction": "on" }), Power::On);
    world.once().await;
    world.once().await;
    assert!(world.fake.actions().is_empty());
    assert_eq!(world.conditions(), ["Completed"]);
}

#[tokio::test(start_paused = true)]
async fn a_cycle_whose_reply_was_lost_is_unknown_and_not_repeated() {
    let world = World::new(json!({ "powerAction": "cycle" }), Power::On);
    world.fake.set_mode(Mode::ReplyLost(Failure::NoAnswer));
    world.once().await;
    world.once().await;
    assert_eq!(world.conditions(), ["Failed"]);
    assert!(world.message().contains("may have been done"), "{}", world.message());
    world.fake.set_mode(Mode::Honest);
    world.once().await;
    assert_eq!(world.fake.actions(), [PowerAction::Cycle]);
}

#[tokio::test(start_paused = true)]
async fn a_cycle_whose_request_was_lost_is_sent_again() {
    for action in ["cycle", "reset"] {
        let world = World::new(json!({ "powerAction": action }), Power::On);
        world.fake.set_mode(Mode::RequestLost(Failure::Timeout));
        world.once().await;
        for _ in 0..3 {
            assert!(matches!(world.once().await, Requeue::After(_)), "nothing was done");
        }
        world.fake.set_mode(Mode::Honest);
        world.once().await;
        assert_eq!(world.fake.actions().len(), 4, "one of them arrived");
        assert_eq!(world.conditions(), ["Completed"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_cycle_is_confirmed_by_seeing_the_power_off() {
    for (mode, message) in [
        (Mode::Honest, "power cycle done: power was off and is on, confirmed"),
        (Mode::Lying, "power cycle acknowledged; power is on and was not seen off"),
    ] {
        let world = World::new(json!({ "powerAction": "cycle" }), Power::On);
        world.fake.set_mode(mode);
        world.once().await;
        world.once().await;
        assert_eq!(world.conditions(), ["Completed"], "{mode:?}");
        assert_eq!(world.message(), message);
        assert_eq!(world.fake.actions(), [PowerAction::Cycle], "it comes back by itself");
    }
}

#[tokio::test(start_paused = true)]
async fn a_box_that_restarted_does_not_repeat_a_cycle() {
    let world = World::new(json!({ "powerAction": "cycle" }), Power::On);
    world.once().await;
    let mut task = world.memory.peek(TASK, "t").unwrap();
    task["status"]["conditions"][0]["message"] = json!(super::decide::SENT);
    world.memory.put(TASK, task);
    world.once().await;
    assert!(world.fake.actions().is_empty());
    assert_eq!(world.conditions(), ["Completed"]);
}

#[tokio::test(start_paused = true)]
async fn a_job_that_is_deleted_takes_no_power() {
    for action in ["off", "soft", "cycle"] {
        let world = World::new(json!({ "powerAction": action }), Power::On);
        world.of_job(json!({ "deletionTimestamp": "2026-01-01T00:00:00Z" }));
        world.once().await;
        world.once().await;
        assert!(world.fake.actions().is_empty(), "{action}");
        assert_eq!(world.conditions(), ["Failed"]);
    }
    // A Job that is deleted still restores power.
    let world = World::new(json!({ "powerAction": "on" }), Power::Off);
    world.of_job(json!({ "deletionTimestamp": "2026-01-01T00:00:00Z" }));
    world.once().await;
    world.once().await;
    assert_eq!(world.fake.actions(), [PowerAction::On]);
}

/// The Job is deleted while the BMC is unreachable. Then the BMC responds again.
#[tokio::test(start_paused = true)]
async fn the_job_is_looked_up_right_before_power_is_taken() {
    let world = World::new(json!({ "powerAction": "off" }), Power::On);
    world.of_job(json!({}));
    world.once().await;
    world.fake.set_mode(Mode::Failing(Failure::NoAnswer));
    let meanwhile = async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        world.memory.delete(JOB, &ObjectKey::new("default", "j")).await.unwrap();
        world.fake.set_mode(Mode::Honest);
    };
    tokio::join!(world.once(), meanwhile);
    assert_eq!(world.fake.real_power(), Power::On);
    assert!(world.fake.actions().is_empty());
    assert_eq!(world.conditions(), ["Failed"]);
}

#[tokio::test(start_paused = true)]
async fn power_that_may_be_off_is_written_down_first() {
    let world = World::new(json!({ "powerAction": "off" }), Power::On);
    world.of_job(json!({}));
    world.once().await;
    world.fake.set_mode(Mode::RequestLost(Failure::NoAnswer));
    assert!(matches!(world.once().await, Requeue::After(_)));
    let task = serde_json::from_value(world.memory.peek(TASK, "t").unwrap()).unwrap();
    assert!(super::may_be_off(&task));
}

#[tokio::test(start_paused = true)]
async fn a_silent_controller_is_asked_again_until_patience_ends() {
    let world = World::new(json!({ "powerAction": "off" }), Power::On);
    world.fake.set_mode(Mode::Failing(Failure::NoAnswer));
    world.once().await;
    assert!(matches!(world.once().await, Requeue::After(_)));
    assert_eq!(world.conditions(), ["Running", "BmcError"]);
    world.clock.advance(SignedDuration::from_mins(11));
    world.once().await;
    assert_eq!(world.conditions(), ["Failed"]);
    let message = "not done after 11 min 0 s: BMC fake:623 did not respond to a command";
    assert!(world.message().starts_with(message), "{}", world.message());
}

#[tokio::test(start_paused = true)]
async fn an_error_is_shown_at_once_and_removed_at_the_end() {
    let world = World::new(json!({ "powerAction": "off" }), Power::On);
    world.once().await;
    world.fake.set_mode(Mode::Failing(Failure::NoAnswer));
    let meanwhile = async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(world.conditions(), ["Running", "BmcError"]);
        assert!(world.message().contains("did not respond to"), "{}", world.message());
        world.fake.set_mode(Mode::Honest);
    };
    tokio::join!(world.once(), meanwhile);
    assert_eq!(world.conditions(), ["Completed"]);
}

#[tokio::test(start_paused = true)]
async fn a_wrong_password_fails_at_once() {
    let world = World::new(json!({ "powerAction": "off" }), Power::On);
    world.fake.set_mode(Mode::Failing(Failure::WrongPassword));
    world.once().await;
    world.once().await;
    assert_eq!(world.conditions(), ["Failed"]);
    assert!(world.fake.actions().is_empty());
}

/// A Task and the Machine of the same BMC, with a wrong password: one login, until the Secret
/// changes.
#[tokio::test(start_paused = true)]
async fn a_refused_login_is_not_repeated_until_the_secret_changes() {
    let world = World::new(json!({ "powerAction": "off" }), Power::On);
    world.fake.set_mode(Mode::Failing(Failure::WrongPassword));
    world.once().await;
    world.once().await;
    assert!(world.message().contains("does not repeat this login before 1970-01-01T00:05:00Z"));
    let failed = world.memory.peek(TASK, "t").unwrap();

    let connection = failed["spec"]["connection"].clone();
    let metadata = json!({ "name": "m", "namespace": "default" });
    let spec = json!({ "connection": connection });
    let key = world.memory.put(MACHINE, json!({ "metadata": metadata, "spec": spec }));
    let machines = MachineReconciler {
        objects: world.memory.clone(),
        drivers: world.drivers.clone(),
        clock: Arc::new(world.clock.clone()),
        poll: Duration::from_secs(30),
        polls: Polls::default(),
    };
    let condition = || world.memory.peek(MACHINE, "m").unwrap()["status"]["conditions"][0].clone();
    machines.reconcile(&key).await.unwrap();
    assert_eq!(condition()["status"], "False");
    assert_eq!(condition()["message"], world.message(), "the Machine has the same reason");

    let mut again = failed;
    again["status"] = json!({});
    world.memory.put(TASK, again);
    world.once().await;
    world.once().await;
    assert_eq!(world.conditions(), ["Failed"]);
    assert_eq!(world.fake.calls(), [Call::Power], "one login for three attempts");

    world.fake.set_mode(Mode::Honest);
    let secret = json!({
        "metadata": { "name": "bmc", "namespace": "default" },
        "data": { "username": "YWRtaW4=", "password": "bmV3" },
    });
    world.memory.put(SECRET, secret);
    machines.reconcile(&key).await.unwrap();
    assert_eq!(condition()["status"], "True");
}
