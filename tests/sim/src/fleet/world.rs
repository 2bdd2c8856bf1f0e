//! Everything together.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use api::tinkerbell::{State, Workflow};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use stdx::Clock;
use tokio::time::Instant;
use workflow_server::Runs;

use super::appliance::Appliance;
use super::chance::Chance;
use super::ledger::Ledger;
use super::link::Front;
use super::nuc::Nuc;
use super::objects::Objects;
use super::plan::{self, Fate};
use super::{Settings, Summary};

/// Machines that nobody wants anything of.
const BYSTANDERS: usize = 5;
/// Within this time all owners have applied their workflows.
const APPLIED: Duration = Duration::from_secs(30);
/// When an owner cancels, at the latest.
const CANCELS: Duration = Duration::from_secs(300);

/// The rack, the box, and chance.
pub struct World {
    /// What it is made of.
    pub settings: Settings,
    /// Where chance comes from.
    pub chance: Chance,
    /// What outlives the box.
    pub objects: Objects,
    /// The machines, bystanders last.
    pub nucs: Vec<Arc<Nuc>>,
    start: Instant,
    ledger: Mutex<Ledger>,
    summary: Mutex<Summary>,
    /// The box, as long as it lives.
    life: Mutex<Option<(Front, Runs)>>,
    cancelled: Mutex<HashSet<usize>>,
}

/// The time as it goes by here.
pub struct VirtualClock(Instant);

impl Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        // Not the time of day: a run is not to depend on it.
        let start = Timestamp::from_second(1_800_000_000).unwrap_or_default();
        let gone = SignedDuration::try_from(self.0.elapsed()).unwrap_or_default();
        start.saturating_add(gone).unwrap_or(Timestamp::MAX)
    }

    fn steady(&self) -> Duration {
        self.0.elapsed()
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl World {
    /// Machines that are off, objects that describe them, and nothing that happens yet.
    pub fn new(settings: Settings) -> Arc<Self> {
        Arc::new_cyclic(|world| {
            let start = Instant::now();
            let objects = Objects::new(Arc::new(VirtualClock(start)));
            let count = settings.machines + BYSTANDERS;
            let machines = (0..count).flat_map(plan::machine);
            for (resource, object) in plan::shared().into_iter().chain(machines) {
                objects.put(resource, object).expect("each has its own name");
            }
            Self {
                settings,
                chance: Chance::new(settings.seed, settings.faults),
                objects,
                nucs: (0..count).map(|index| Arc::new(Nuc::new(index, world.clone()))).collect(),
                start,
                ledger: Mutex::default(),
                summary: Mutex::default(),
                life: Mutex::default(),
                cancelled: Mutex::default(),
            }
        })
    }

    /// Lets it all begin.
    pub fn begin(self: &Arc<Self>) {
        tokio::spawn(Appliance::live(Arc::downgrade(self)));
        for index in 0..self.settings.machines {
            tokio::spawn(Arc::clone(self).owner(index));
            self.nucs[index].suffer();
        }
        for nuc in &self.nucs[self.settings.machines..] {
            nuc.switch_on();
        }
    }

    /// Applies a workflow, and perhaps thinks better of it.
    async fn owner(self: Arc<Self>, index: usize) {
        tokio::time::sleep(self.chance.upto(APPLIED)).await;
        self.objects.put(plan::KIND, plan::workflow(index)).expect("each machine has one");
        if self.chance.of_hundred(self.settings.faults.cancelled) {
            tokio::time::sleep(self.chance.upto(CANCELS)).await;
            locked(&self.cancelled).insert(index);
            self.objects.edit(plan::KIND, &plan::key(index), |object| {
                object["metadata"]["annotations"]["tinbox.dev/cancel"] = json!("1");
            });
        }
    }

    /// The time.
    pub fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(VirtualClock(self.start))
    }

    /// What must never happen.
    pub fn ledger(&self) -> MutexGuard<'_, Ledger> {
        locked(&self.ledger)
    }

    /// Counts what happens.
    pub fn count(&self, count: impl FnOnce(&mut Summary)) {
        count(&mut locked(&self.summary));
    }

    /// The box lives, or is dead.
    pub fn set_life(&self, life: Option<(Front, Runs)>) {
        *locked(&self.life) = life;
    }

    /// Where the box accepts agents, while it lives.
    pub fn front(&self) -> Option<Front> {
        locked(&self.life).as_ref().map(|(front, _)| front.clone())
    }

    /// What the box knows of workflows, while it lives.
    pub fn runs(&self) -> Option<Runs> {
        locked(&self.life).as_ref().map(|(_, runs)| runs.clone())
    }

    /// The workflow of a machine.
    pub fn workflow(&self, index: usize) -> Option<Workflow> {
        let object = self.objects.peek(plan::KIND, &plan::key(index))?;
        Some(serde_json::from_value(object).expect("what controllers write can be read"))
    }

    fn workflows(&self) -> impl Iterator<Item = (usize, Option<Workflow>)> {
        (0..self.settings.machines).map(|index| (index, self.workflow(index)))
    }

    /// Whether every workflow ended as it must, for good.
    pub fn have_all_ended(&self) -> bool {
        let ended = self.workflows().all(|(index, workflow)| {
            workflow.is_some_and(|workflow| self.is_over(index, &workflow))
        });
        if ended {
            self.count(|summary| summary.lasted = self.start.elapsed());
        }
        ended
    }

    fn is_over(&self, index: usize, workflow: &Workflow) -> bool {
        let status = &workflow.status;
        if !status.state.ended() {
            return false;
        }
        let attempts = workflow.spec.retry.as_ref().map_or(1, |retry| retry.attempts);
        status.state == State::Success
            || locked(&self.cancelled).contains(&index)
            || status.attempts >= attempts
    }

    /// Those that did not end, and how far they are.
    pub fn stories(&self) -> String {
        let open = self.workflows().filter(|(index, workflow)| {
            !workflow.as_ref().is_some_and(|workflow| self.is_over(*index, workflow))
        });
        let stories: Vec<String> = open
            .map(|(index, workflow)| {
                let status = workflow.map(|workflow| workflow.status).unwrap_or_default();
                let condition = status.conditions.last().map(|it| it.message.clone());
                format!(
                    "{} is {:?} in attempt {}, its machine {}: {}",
                    plan::name(index),
                    status.state,
                    status.attempts,
                    self.nucs[index].story(),
                    condition.unwrap_or_default()
                )
            })
            .collect();
        let few: Vec<&str> = stories.iter().take(5).map(String::as_str).collect();
        format!("{} workflows did not end: {}", stories.len(), few.join("; "))
    }

    /// What came of it, when every workflow ended as it had to.
    ///
    /// # Errors
    /// The first that did not.
    pub fn summary(&self) -> Result<Summary, String> {
        if let Some(violation) = self.ledger().violation() {
            return Err(violation);
        }
        let mut summary = locked(&self.summary).clone();
        summary.machines = self.settings.machines;
        summary.begun = self.ledger().begun();
        for (index, workflow) in self.workflows() {
            let Some(workflow) = workflow else { continue };
            let ended = workflow.status.ended.clone().unwrap_or_default();
            let was_cancelled = locked(&self.cancelled).contains(&index);
            match (workflow.status.state, plan::fate(index)) {
                (State::Success, Fate::Succeeds) => summary.succeeded += 1,
                (State::Failed, _) if was_cancelled && ended.reason == "Cancelled" => {
                    summary.cancelled += 1;
                }
                (State::Failed, Fate::Fails) if ended.message.contains(plan::DOOM) => {
                    summary.failed += 1;
                }
                // Its machine was away in its last attempt.
                (State::Failed | State::Timeout, Fate::Fails) if self.nucs[index].had_mishap() => {
                    summary.failed += 1;
                }
                (state, fate) => {
                    let (name, message) = (plan::name(index), ended.message);
                    return Err(format!("{name} {fate:?}, and is {state:?}: {message}"));
                }
            }
        }
        Ok(summary)
    }
}
