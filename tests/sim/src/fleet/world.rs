//! State of one fleet run: the machines, the box, the stored objects and the ledger.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use api::tinkerbell::{State, Workflow};
use objects::read;
use provisioning::hardware_views::HardwareViews;
use stdx::Clock;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::appliance::Appliance;
use super::chance::Chance;
use super::incident::{Injection, Steps};
use super::ledger::Ledger;
use super::link::Front;
use super::nuc::Nuc;
use super::objects::Objects;
use super::outages::{Outages, VirtualClock};
use super::plan::{self, Fate, Kind, Plan};
use super::{Settings, Summary};

/// State of one run, which all parts of the simulation share.
pub struct World {
    /// Settings of the run.
    pub settings: Settings,
    /// Number and roles of the machines.
    pub plan: Plan,
    /// Source of all random decisions.
    pub chance: Chance,
    /// Outages and their times.
    pub outages: Arc<Outages>,
    /// Stored objects, which survive a kill of the box.
    pub objects: Objects,
    /// The machines by number.
    pub nucs: BTreeMap<usize, Arc<Nuc>>,
    /// The steps of a trial.
    pub steps: Steps,
    /// Notified to break every connection.
    pub cutting: Notify,
    /// Notified to kill the box.
    pub dying: Arc<Notify>,
    is_trial: bool,
    start: Instant,
    ledger: Mutex<Ledger>,
    summary: Mutex<Summary>,
    /// Life of the box; `None` while it is down.
    life: Mutex<Option<Life>>,
    time_away: Mutex<Option<Duration>>,
    wishes: Mutex<HashMap<usize, Wish>>,
    /// Machines whose workflow did not end yet.
    open: Mutex<BTreeSet<usize>>,
}

/// State of the running box: it starts, then it serves machines.
enum Life {
    Starts,
    Serves(Front, Arc<HardwareViews>),
}

/// Request of an owner beside a workflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// Cancel the machine's workflow.
    Cancelled,
    /// Cancel the workflow, then retry it.
    Retried,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl World {
    /// Builds machines that are off and the objects that describe them, and schedules no event.
    /// `trial` sets one kind for all workflows, counts the steps, and may inject an incident at a
    /// step.
    pub fn new(settings: Settings, trial: Option<(Kind, Option<Injection>)>) -> Arc<Self> {
        let plan = Plan { machines: settings.machines, only: trial.map(|(kind, _)| kind) };
        Arc::new_cyclic(|world| {
            let start = Instant::now();
            let chance = Chance::new(settings.seed, settings.faults);
            let outages = Arc::new(Outages::draw(&chance, &settings.faults, plan.all()));
            let clock = VirtualClock::new(start, Arc::clone(&outages));
            let objects = Objects::new(Arc::new(clock));
            let machines = plan.all().flat_map(|it| plan::machine(it, plan.first(it).is_some()));
            for (resource, object) in plan::shared().into_iter().chain(machines) {
                objects.put(resource, object);
            }
            let nuc = |index| (index, Arc::new(Nuc::new(index, world.clone())));
            Self {
                settings,
                plan,
                chance,
                outages,
                objects,
                nucs: plan.all().map(nuc).collect(),
                steps: Steps::new(trial.and_then(|(_, injection)| injection)),
                cutting: Notify::default(),
                dying: Arc::default(),
                is_trial: trial.is_some(),
                start,
                ledger: Mutex::default(),
                summary: Mutex::default(),
                life: Mutex::default(),
                time_away: Mutex::default(),
                wishes: Mutex::default(),
                open: Mutex::new((0..settings.machines).collect()),
            }
        })
    }

    /// Starts the box, the machines and the faults.
    pub fn begin(self: &Arc<Self>) {
        tokio::spawn(Appliance::live(Arc::downgrade(self)));
        for moment in self.blackouts() {
            tokio::spawn(Arc::clone(self).has_blackout(moment));
        }
        for index in 0..self.settings.machines {
            tokio::spawn(Arc::clone(self).owns(index));
            self.nucs[&index].suffer();
        }
        for index in self.plan.seconds() {
            tokio::spawn(Arc::clone(self).tends(index));
            self.nucs[&index].suffer();
        }
        for index in self.plan.bystanders() {
            self.nucs[&index].switch_on();
        }
    }

    /// True when steps are counted.
    pub fn is_trial(&self) -> bool {
        self.is_trial
    }

    /// Kills the box, which starts again after `away`.
    pub fn kill_box(&self, away: Duration) {
        if locked(&self.life).take().is_some() {
            *locked(&self.time_away) = Some(away);
            self.dying.notify_one();
        }
    }

    /// Takes the downtime that [`World::kill_box`] set; `None` after a random kill.
    pub fn time_away(&self) -> Option<Duration> {
        locked(&self.time_away).take()
    }

    /// Breaks every connection of an agent.
    pub fn cut_connections(&self) {
        self.cutting.notify_waiters();
    }

    /// Requests of owners beside their workflows, by machine.
    pub fn wishes(&self) -> MutexGuard<'_, HashMap<usize, Wish>> {
        locked(&self.wishes)
    }

    /// Time since the start.
    pub fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// The box's clock, with its faults.
    pub fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(VirtualClock::new(self.start, Arc::clone(&self.outages)))
    }

    /// Ledger of the rules that must never be broken.
    pub fn ledger(&self) -> MutexGuard<'_, Ledger> {
        locked(&self.ledger)
    }

    /// Updates the counts of the summary.
    pub fn count(&self, count: impl FnOnce(&mut Summary)) {
        count(&mut locked(&self.summary));
    }

    /// Records that the box starts.
    pub fn starts_life(&self) {
        *locked(&self.life) = Some(Life::Starts);
    }

    /// Records that the box accepts connections and answers machines.
    pub fn serves(&self, front: Front, views: Arc<HardwareViews>) {
        *locked(&self.life) = Some(Life::Serves(front, views));
    }

    /// Records that the box is down.
    pub fn ends_life(&self) {
        *locked(&self.life) = None;
    }

    /// Queue of the box's agent connections; `None` unless the box serves.
    pub fn front(&self) -> Option<Front> {
        match locked(&self.life).as_ref()? {
            Life::Starts => None,
            Life::Serves(front, _) => Some(front.clone()),
        }
    }

    /// The box's directory of machines; `None` unless the box serves.
    pub fn views(&self) -> Option<Arc<HardwareViews>> {
        match locked(&self.life).as_ref()? {
            Life::Starts => None,
            Life::Serves(_, views) => Some(Arc::clone(views)),
        }
    }

    /// The workflow of a machine.
    pub fn workflow(&self, index: usize) -> Option<Workflow> {
        let object = self.objects.peek(plan::KIND, &plan::key(index))?;
        Some(read(object).expect("what controllers write can be read"))
    }

    fn workflows(&self) -> impl Iterator<Item = (usize, Option<Workflow>)> {
        (0..self.settings.machines).map(|index| (index, self.workflow(index)))
    }

    /// True when every workflow has ended, and no further attempt follows.
    pub fn have_all_ended(&self) -> bool {
        let mut open = locked(&self.open);
        open.retain(|index| {
            let workflow = self.workflow(*index);
            !workflow.is_some_and(|workflow| self.is_over(*index, &workflow))
        });
        if open.is_empty() {
            self.count(|summary| summary.lasted = self.start.elapsed());
        }
        open.is_empty()
    }

    /// True when a workflow has ended, and no further attempt follows.
    pub fn is_over(&self, index: usize, workflow: &Workflow) -> bool {
        let status = &workflow.status;
        if !status.state.ended() {
            return false;
        }
        let attempts = workflow.spec.retry.as_ref().map_or(1, |retry| retry.attempts);
        let is_done = status.state == State::Success || status.attempts >= attempts;
        match self.wishes().get(&index) {
            None => is_done,
            Some(Wish::Cancelled) => {
                is_done || status.ended.as_ref().is_some_and(|it| it.reason == "Cancelled")
            }
            Some(Wish::Retried) => is_done && !status.requests.retry.is_empty(),
        }
    }

    /// Text with the number of workflows that did not end, and the progress of up to five.
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
                    self.nucs[&index].story(),
                    condition.unwrap_or_default()
                )
            })
            .collect();
        let few: Vec<&str> = stories.iter().take(5).map(String::as_str).collect();
        format!("{} workflows did not end: {}", stories.len(), few.join("; "))
    }

    /// Returns the summary, when every workflow ended as planned.
    ///
    /// # Errors
    /// The first broken rule, or the first workflow that did not end as planned.
    pub fn summary(&self) -> Result<Summary, String> {
        if let Some(violation) = self.ledger().violation() {
            return Err(violation);
        }
        let mut summary = locked(&self.summary).clone();
        summary.machines = self.settings.machines;
        summary.outages = self.outages.count();
        summary.begun = self.ledger().begun().len();
        for (index, workflow) in self.workflows() {
            let Some(workflow) = workflow else { continue };
            let ended = workflow.status.ended.clone().unwrap_or_default();
            let wish = self.wishes().get(&index).copied();
            summary.retried += usize::from(wish == Some(Wish::Retried));
            match (workflow.status.state, self.plan.fate(index)) {
                (State::Success, Fate::Succeeds) => {
                    self.are_installed(index)?;
                    summary.succeeded += 1;
                }
                (State::Failed, _) if wish.is_some() && ended.reason == "Cancelled" => {
                    summary.cancelled += 1;
                }
                (State::Failed, Fate::Fails) if ended.message.contains(plan::DOOM) => {
                    summary.failed += 1;
                }
                // The machine had an accident in its last attempt.
                (State::Failed | State::Timeout, Fate::Fails) if self.nucs[&index].had_mishap() => {
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

    /// Checks that every machine of a workflow has its whole image, and that no action writes to
    /// the disk.
    fn are_installed(&self, index: usize) -> Result<(), String> {
        for member in self.plan.members(index) {
            let disk = &self.nucs[&member].disk;
            if !disk.is_whole() || disk.is_open() {
                return Err(format!("{} has no whole image", plan::name(member)));
            }
        }
        Ok(())
    }
}
