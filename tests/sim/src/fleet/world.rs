//! Everything together.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use agent_service::Runs;
use api::tinkerbell::{State, Workflow};
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

/// The rack, the box, and chance.
pub struct World {
    /// What it is made of.
    pub settings: Settings,
    /// Which machines there are.
    pub plan: Plan,
    /// Where chance comes from.
    pub chance: Chance,
    /// Outages and their times.
    pub outages: Arc<Outages>,
    /// What outlives the box.
    pub objects: Objects,
    /// The machines by number.
    pub nucs: BTreeMap<usize, Arc<Nuc>>,
    /// The steps of a trial.
    pub steps: Steps,
    /// Breaks every connection.
    pub cutting: Notify,
    /// Ends the box's life.
    pub dying: Arc<Notify>,
    is_trial: bool,
    start: Instant,
    ledger: Mutex<Ledger>,
    summary: Mutex<Summary>,
    history: Mutex<History>,
    /// The box, as long as it lives.
    life: Mutex<Option<(Front, Runs)>>,
    time_away: Mutex<Option<Duration>>,
    wishes: Mutex<HashMap<usize, Wish>>,
    /// Machines whose workflow did not end yet.
    open: Mutex<BTreeSet<usize>>,
}

/// Events that the box recorded.
#[derive(Default)]
pub struct History {
    /// Events of the API: the name of the object and the reason.
    pub events: Vec<(String, String)>,
    /// Events of machines: the agent and the event.
    pub moments: Vec<(String, String)>,
}

/// Request of an owner beside a workflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// Its end.
    Cancelled,
    /// Its end, and another attempt after that.
    Retried,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl World {
    /// Machines that are off, objects that describe them, and nothing that happens yet. `trial`
    /// makes all workflows of one kind, and counts steps.
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
                objects.put(resource, object).expect("each has its own name");
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
                history: Mutex::default(),
                life: Mutex::default(),
                time_away: Mutex::default(),
                wishes: Mutex::default(),
                open: Mutex::new((0..settings.machines).collect()),
            }
        })
    }

    /// Lets it all begin.
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

    /// Ends the box's life; it comes back after so long.
    pub fn kill_box(&self, away: Duration) {
        if locked(&self.life).take().is_some() {
            *locked(&self.time_away) = Some(away);
            self.dying.notify_one();
        }
    }

    /// Time that the box is away after [`World::kill_box`].
    pub fn time_away(&self) -> Option<Duration> {
        locked(&self.time_away).take()
    }

    /// Breaks every connection.
    pub fn cut_connections(&self) {
        self.cutting.notify_waiters();
    }

    /// Events that the box recorded.
    pub fn history(&self) -> MutexGuard<'_, History> {
        locked(&self.history)
    }

    /// Requests of owners beside their workflows, by machine.
    pub fn wishes(&self) -> MutexGuard<'_, HashMap<usize, Wish>> {
        locked(&self.wishes)
    }

    /// Time since the start.
    pub fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// The box's clock.
    pub fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(VirtualClock::new(self.start, Arc::clone(&self.outages)))
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

    /// True when a workflow ended for good.
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
                    self.nucs[&index].story(),
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
                // Its machine was away in its last attempt.
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

    /// True when the machines of a workflow that succeeded have their image, and nothing writes it.
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
