//! A fleet that a test controls: the test waits for a state of a workflow and then acts.

use std::sync::Arc;
use std::time::Duration;

use api::meta::ObjectKey;
use api::tinkerbell::{ActionState, ActionStatus, HARDWARE, RetryFrom, Workflow};
use tokio::time::Instant;

use super::incident::Incident;
use super::plan::{self, Kind, NAMESPACE};
use super::world::{Wish, World};
use super::{BOUND, Failure, Faults, Settings, Summary, finish, on_virtual_time};

/// Interval between two checks of a test.
const LOOK: Duration = Duration::from_millis(100);

/// The fleet, for a test.
pub struct Stage(Arc<World>);

/// Runs workflows of one kind without faults, with `script` at the same time, until every workflow
/// has ended.
///
/// # Errors
/// A rule is broken, or a workflow does not end as planned.
pub fn direct(
    kind: Kind,
    machines: usize,
    seed: u64,
    script: impl AsyncFnOnce(&Stage),
) -> Result<Summary, Failure> {
    let settings = Settings { machines, seed, faults: Faults::CALM };
    on_virtual_time(seed, async {
        let stage = Stage(World::new(settings, Some((kind, None))));
        stage.0.begin();
        script(&stage).await;
        finish(&stage.0).await
    })
}

/// An action of a workflow, by name.
///
/// # Panics
/// When the workflow has no such action.
pub fn action<'a>(workflow: &'a Workflow, name: &str) -> &'a ActionStatus {
    let mut actions = workflow.status.tasks.iter().flat_map(|task| &task.actions);
    actions.find(|action| action.name == name).unwrap_or_else(|| panic!("no action {name}"))
}

impl Stage {
    /// Waits until `test` is true of a machine's workflow.
    ///
    /// # Panics
    /// When `test` does not become true in time.
    pub async fn until(
        &self,
        index: usize,
        what: &str,
        test: impl Fn(&Workflow) -> bool,
    ) -> Workflow {
        self.until_of(&plan::name(index), what, test).await
    }

    /// Waits until `test` is true of a workflow.
    ///
    /// # Panics
    /// When `test` does not become true in time.
    pub async fn until_of(
        &self,
        name: &str,
        what: &str,
        test: impl Fn(&Workflow) -> bool,
    ) -> Workflow {
        let (key, bound) = (ObjectKey::new(NAMESPACE, name), Instant::now() + BOUND);
        loop {
            let object = self.0.objects.peek(plan::KIND, &key);
            let workflow = object.and_then(|object| serde_json::from_value(object).ok());
            if let Some(workflow) = workflow.filter(&test) {
                return workflow;
            }
            assert!(Instant::now() < bound, "{name} is never {what}: {}", self.0.stories());
            self.pass(LOOK).await;
        }
    }

    /// Waits until an action of a machine's workflow runs. Use it for an action that writes an
    /// image; others may end between two checks.
    pub async fn until_runs(&self, index: usize, name: &str) -> Workflow {
        let runs = |workflow: &Workflow| {
            let mut actions = workflow.status.tasks.iter().flat_map(|task| &task.actions);
            actions.any(|it| it.name == name && it.state == ActionState::Running)
        };
        self.until(index, "at its action", runs).await
    }

    /// Waits until `test` is true of the fleet.
    ///
    /// # Panics
    /// When `test` does not become true in time.
    pub async fn until_that(&self, what: &str, test: impl Fn(&Self) -> bool) {
        let bound = Instant::now() + BOUND;
        while !test(self) {
            assert!(Instant::now() < bound, "never: {what}: {}", self.0.stories());
            self.pass(LOOK).await;
        }
    }

    /// Lets virtual time pass.
    ///
    /// # Panics
    /// A rule was broken.
    pub async fn pass(&self, time: Duration) {
        tokio::time::sleep(time).await;
        assert_eq!(self.0.ledger().violation(), None);
    }

    /// Injects an incident now.
    pub fn inject(&self, incident: Incident, machine: usize) {
        self.0.inject(incident, machine);
    }

    /// Requests the cancellation of a machine's workflow.
    pub fn cancel(&self, index: usize) {
        self.0.cancel(index, Wish::Cancelled);
    }

    /// Requests a retry of a machine's workflow.
    pub fn retry(&self, index: usize, from: RetryFrom) {
        self.0.retry(index, from);
    }

    /// Applies a workflow of one action, for which the machine is not booted. The action `doomed`
    /// fails with the message `says`.
    pub fn apply(&self, index: usize, name: &str, image: &str, says: &str) {
        for (resource, object) in plan::one_action(index, name, image, says) {
            self.0.objects.put(resource, object);
        }
    }

    /// Number of times a machine's management controller switched it on.
    pub fn switched_on(&self, index: usize) -> usize {
        self.0.nucs[&index].switched_on()
    }

    /// Current activity of a machine as text.
    pub fn story(&self, index: usize) -> &'static str {
        self.0.nucs[&index].story()
    }

    /// True when an action has a machine's disk open.
    pub fn is_writing(&self, index: usize) -> bool {
        self.0.nucs[&index].disk.is_open()
    }

    /// True when a machine's disk starts a system.
    pub fn is_bootable(&self, index: usize) -> bool {
        self.0.nucs[&index].disk.is_bootable()
    }

    /// The actions that machines began, in order: the machine and the name.
    pub fn begun(&self) -> Vec<(String, String)> {
        let ledger = self.0.ledger();
        ledger.begun().iter().map(|it| (it.machine.clone(), it.action.clone())).collect()
    }

    /// True when an event of a machine has these words.
    pub fn has_event(&self, index: usize, words: &str) -> bool {
        let events = self.0.objects.events(HARDWARE.kind, &plan::name(index));
        events.iter().any(|(_, message, _)| message.contains(words))
    }

    /// The reasons of the events of a machine's workflow, in any order.
    pub fn events(&self, index: usize) -> Vec<String> {
        let events = self.0.objects.events(plan::KIND.kind, &plan::name(index));
        events.into_iter().map(|(reason, ..)| reason).collect()
    }
}
