//! Incidents at an exact step, so that a test can inject one at every step of a workflow.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::world::World;

/// Downtime of the box after an incident.
const AWAY: Duration = Duration::from_secs(10);
/// Downtime longer than any agent timeout of the box.
const AWAY_FOR_LONG: Duration = Duration::from_secs(600);
/// Time until the power of a machine returns by itself.
const DARK: Duration = Duration::from_secs(5);
/// Delay of the second incident: in the middle of the box's downtime, and of a machine's boot.
const MEANWHILE: Duration = Duration::from_secs(4);

/// One fault, which happens once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Incident {
    /// The box dies and comes back.
    Box,
    /// The box dies and is away for longer than its agent timeout.
    BoxForLong,
    /// Every connection of an agent breaks.
    Connections,
    /// The agent hangs, and its machine with it.
    AgentHangs,
    /// The agent ends, and its kernel restarts the machine.
    AgentEnds,
    /// The machine loses power and stays off until its BMC switches it on.
    Power,
    /// The machine loses power, which returns after a few seconds.
    PowerReturns,
    /// The box and the machine lose power in the same instant.
    Both,
    /// The box dies, and the machine loses power while the box is away.
    BoxThenMachine,
    /// The machine loses power, and the box dies while the machine starts again.
    MachineThenBox,
}

impl Incident {
    /// The incidents that stop a machine.
    pub const OF_MACHINES: [Self; 7] = [
        Self::AgentHangs,
        Self::AgentEnds,
        Self::Power,
        Self::PowerReturns,
        Self::Both,
        Self::BoxThenMachine,
        Self::MachineThenBox,
    ];

    /// True when the box dies at once.
    fn kills_box(self) -> bool {
        matches!(self, Self::Box | Self::BoxForLong | Self::Both | Self::BoxThenMachine)
    }

    /// True when the machine stops at once.
    fn stops_machine(self) -> bool {
        !self.spares_machines() && self != Self::BoxThenMachine
    }

    /// True if the incident stops no machine, now or later.
    pub fn spares_machines(self) -> bool {
        matches!(self, Self::Box | Self::BoxForLong | Self::Connections)
    }
}

/// Component that takes a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Actor {
    /// The box's service or controllers.
    Box,
    /// A machine, by its index.
    Machine(usize),
}

/// An incident, its step and the machine that it hits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Injection {
    /// Kind of incident to inject.
    pub incident: Incident,
    /// The number of the step, from 0.
    pub at: usize,
    /// Index of the machine that the incident hits.
    pub machine: usize,
}

/// Steps of a trial so far, and the incident to inject.
#[derive(Default)]
pub struct Steps {
    taken: Mutex<Vec<&'static str>>,
    injection: Option<Injection>,
    has_happened: AtomicBool,
}

impl Steps {
    /// Steps of a run in which `injection` happens.
    pub fn new(injection: Option<Injection>) -> Self {
        Self { injection, ..Self::default() }
    }

    fn taken(&self) -> MutexGuard<'_, Vec<&'static str>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Description of each step.
    pub fn names(&self) -> Vec<&'static str> {
        self.taken().clone()
    }

    /// True when the incident happened.
    pub fn has_happened(&self) -> bool {
        self.has_happened.load(Ordering::Relaxed)
    }

    fn take(&self, name: &'static str) -> Option<Injection> {
        let mut taken = self.taken();
        taken.push(name);
        let injection = self.injection.filter(|injection| injection.at + 1 == taken.len());
        self.has_happened.fetch_or(injection.is_some(), Ordering::Relaxed);
        injection
    }
}

impl World {
    /// Records a step, at which the incident may happen. Never returns if the incident stops
    /// `actor`.
    pub async fn step(self: &Arc<Self>, actor: Actor, name: &'static str) {
        if !self.survives(actor, name) {
            std::future::pending().await
        }
    }

    /// Records a step, at which the incident may happen; returns false if the incident stops
    /// `actor`.
    pub fn survives(self: &Arc<Self>, actor: Actor, name: &'static str) -> bool {
        if !self.is_trial() {
            return true;
        }
        let Some(Injection { incident, machine, .. }) = self.steps.take(name) else { return true };
        self.inject(incident, machine);
        match actor {
            Actor::Box => !incident.kills_box(),
            Actor::Machine(index) => index != machine || !incident.stops_machine(),
        }
    }

    /// Injects an incident now.
    pub fn inject(self: &Arc<Self>, incident: Incident, machine: usize) {
        let nuc = Arc::clone(&self.nucs[&machine]);
        match incident {
            Incident::Box => self.kill_box(AWAY),
            Incident::BoxForLong => self.kill_box(AWAY_FOR_LONG),
            Incident::Connections => self.cut_connections(),
            Incident::AgentHangs => nuc.hang(),
            Incident::AgentEnds if nuc.is_on() => nuc.reset(),
            Incident::Power => nuc.switch_off(),
            Incident::PowerReturns => nuc.lose_power(DARK),
            Incident::Both => {
                self.kill_box(AWAY);
                nuc.lose_power(DARK);
            }
            Incident::BoxThenMachine => {
                self.kill_box(AWAY);
                tokio::spawn(async move {
                    tokio::time::sleep(MEANWHILE).await;
                    nuc.lose_power(DARK);
                });
            }
            Incident::MachineThenBox => {
                nuc.lose_power(DARK);
                let world = Arc::clone(self);
                tokio::spawn(async move {
                    tokio::time::sleep(DARK + MEANWHILE).await;
                    world.kill_box(AWAY);
                });
            }
            Incident::AgentEnds => {}
        }
    }
}
