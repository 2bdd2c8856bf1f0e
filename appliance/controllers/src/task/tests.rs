use std::sync::Arc;

use api::bmc::TASK;
use api::core::SECRET;
use api::meta::ObjectKey;
use bmc::fake::{Call, Failure, Fake, Mode};
use bmc::{Driver, Endpoint, Power, PowerAction};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use stdx::TestClock;

use super::TaskReconciler;
use crate::machine::Drivers;
use crate::memory::Memory;
use crate::runtime::{Again, Reconciler};

struct One(Fake);

impl Drivers for One {
    fn open(&self, _endpoint: Endpoint) -> Arc<dyn Driver> {
        Arc::new(self.0.clone())
    }
}

struct World {
    memory: Arc<Memory>,
    fake: Fake,
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
        Self { memory, fake: Fake::new(power), clock, key }
    }

    /// A fresh reconciler each time, as after a restart.
    async fn once(&self) -> Again {
        let reconciler = TaskReconciler {
            objects: self.memory.clone(),
            drivers: Arc::new(One(self.fake.clone())),
            clock: Arc::new(self.clock.clone()),
        };
        reconciler.reconcile(&self.key).await.unwrap()
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
async fn on_and_off_do_nothing_where_nothing_is_to_be_done() {
    let world = World::new(json!({ "powerAction": "on" }), Power::On);
    world.once().await;
    world.once().await;
    assert!(world.fake.actions().is_empty());
    assert_eq!(world.conditions(), ["Completed"]);
}

#[tokio::test(start_paused = true)]
async fn a_cycle_whose_reply_was_lost_is_not_repeated() {
    let world = World::new(json!({ "powerAction": "cycle" }), Power::On);
    world.fake.set_mode(Mode::ReplyLost(Failure::NoAnswer));
    world.once().await;
    assert!(matches!(world.once().await, Again::After(_)));
    world.fake.set_mode(Mode::Honest);
    world.once().await;
    assert_eq!(world.fake.actions(), [PowerAction::Cycle]);
    assert_eq!(world.conditions(), ["Completed"]);
}

#[tokio::test(start_paused = true)]
async fn a_silent_controller_is_asked_again_until_patience_ends() {
    let world = World::new(json!({ "powerAction": "off" }), Power::On);
    world.fake.set_mode(Mode::Failing(Failure::NoAnswer));
    world.once().await;
    assert!(matches!(world.once().await, Again::After(_)));
    assert_eq!(world.conditions(), ["Running"]);
    world.clock.advance(SignedDuration::from_mins(11));
    world.once().await;
    assert_eq!(world.conditions(), ["Failed"]);
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
