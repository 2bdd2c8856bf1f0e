//! Rules that must never be broken, checked with every action that a machine begins and every write
//! of a workflow's status.

use std::collections::{HashMap, HashSet};

use api::tinkerbell::{ActionState, State, Workflow};
use bmc::PowerAction;
use serde_json::Value;
use tokio::time::Instant;

/// Observed actions and power states, and the first broken rule.
#[derive(Default)]
pub struct Ledger {
    /// Actions that may begin, because the box has stored them as running, and the agent ID of the
    /// task of each.
    allowed: HashMap<String, String>,
    /// Every action that began, in order.
    begun: Vec<Begun>,
    /// Actions that an agent began, by the agent's life.
    lives: HashSet<(By, String)>,
    /// Actions that succeeded on their machine.
    done: HashSet<String>,
    /// Actions that the box stored as succeeded.
    credited: HashSet<String>,
    /// Actions that the box stored as running, by its last write.
    running: HashSet<String>,
    /// Machines for which the box has requested power off from the BMC, until the next power-on.
    asked_off: HashSet<String>,
    /// Machines that a BMC has switched off for the box, and has not switched on again.
    switched_off: HashSet<String>,
    /// Virtual time of each workflow's last end. The box's own clock is not used: faults change
    /// this clock.
    ended: HashMap<String, Instant>,
    violation: Option<String>,
}

/// An agent from its start to its end.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct By {
    /// Name of the agent's machine.
    pub machine: String,
    /// ID of the agent, which is the machine's MAC address.
    pub agent: String,
    /// Number of agent starts on this machine, including the start of this agent.
    pub life: usize,
}

/// An action that a machine began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Begun {
    /// Name of the machine that began the action.
    pub machine: String,
    /// The name of the action.
    pub action: String,
    /// ID of the action; each attempt has a new ID.
    pub id: String,
}

fn read(object: &Value) -> Workflow {
    serde_json::from_value(object.clone()).expect("what controllers write can be read")
}

impl Ledger {
    /// The first broken rule.
    pub fn violation(&self) -> Option<String> {
        self.violation.clone()
    }

    /// Time of a workflow's last end.
    pub fn ended(&self, workflow: &str) -> Option<Instant> {
        self.ended.get(workflow).copied()
    }

    /// Every action that began, in order.
    pub fn begun(&self) -> &[Begun] {
        &self.begun
    }

    /// Records a broken rule; only the first is stored.
    pub fn never(&mut self, what: String) {
        self.violation.get_or_insert(what);
    }

    /// Records that an agent begins an action.
    pub fn begins(&mut self, by: &By, id: &str, name: &str) {
        let By { machine, agent, .. } = by;
        if self.credited.contains(id) {
            self.never(format!("{machine} begins {name} again, which ended well"));
        }
        match self.allowed.get(id) {
            None => self.never(format!("{machine} begins {name}, and no workflow says it runs")),
            Some(owner) if owner != agent => {
                let what = format!("{machine} begins {name}, which is a task of agent {owner}");
                self.never(what);
            }
            Some(_) => {}
        }
        if !self.lives.insert((by.clone(), id.to_owned())) {
            self.never(format!("{machine} begins {name} twice without a restart"));
        }
        self.begun.push(Begun {
            machine: machine.clone(),
            action: name.to_owned(),
            id: id.to_owned(),
        });
    }

    /// Records that an agent leaves its system, after the box acknowledged the report of the
    /// action. The box must have stored the report by then.
    pub fn leaves(&mut self, machine: &str, id: &str) {
        if self.running.contains(id) {
            self.never(format!("{machine} is left, and its report is not stored"));
        }
    }

    /// Records that a machine succeeded with an action.
    pub fn ends(&mut self, id: &str) {
        self.done.insert(id.to_owned());
    }

    /// Records a power command of the box to a machine's BMC; the command may not arrive.
    pub fn asks(&mut self, machine: &str, action: PowerAction) {
        if matches!(action, PowerAction::Off | PowerAction::Soft) {
            self.asked_off.insert(machine.to_owned());
        }
    }

    /// Records that a BMC executes a power command. The command needs a workflow of the machine
    /// (`is_wanted`), except for a power-on after the box has requested power off.
    pub fn switched(&mut self, machine: &str, action: PowerAction, is_wanted: bool) {
        let gives_back = action == PowerAction::On && self.asked_off.remove(machine);
        if !is_wanted && !gives_back {
            self.never(format!(
                "{machine} is switched ({action:?}), and no workflow is to be done to it"
            ));
        }
        if matches!(action, PowerAction::Off | PowerAction::Soft) {
            self.switched_off.insert(machine.to_owned());
        } else {
            self.switched_off.remove(machine);
        }
    }

    /// Checks, at the end of a run, that the box has left no machine switched off.
    pub fn ends_on(&mut self) {
        if let Some(machine) = self.switched_off.iter().min().cloned() {
            self.never(format!("{machine} was switched off by the box, and is left without power"));
        }
    }

    /// Records a write of a workflow's status.
    pub fn committed(&mut self, before: &Value, after: &Value) {
        let (before, after) = (read(before), read(after));
        let name = &after.metadata.name;
        let (was, is) = (&before.status, &after.status);
        if is.state.ended() && !was.state.ended() {
            self.ended.insert(name.clone(), Instant::now());
        }
        if was.state.ended() && was.attempts == is.attempts && was.state != is.state {
            self.never(format!("{name} was {:?} and is {:?} in one attempt", was.state, is.state));
        }
        for action in was.tasks.iter().flat_map(|task| &task.actions) {
            self.running.remove(&action.id);
        }
        let mut all_well = true;
        for task in &is.tasks {
            for action in &task.actions {
                match action.state {
                    ActionState::Running => {
                        self.allowed.insert(action.id.clone(), task.agent_id.clone());
                        self.running.insert(action.id.clone());
                        if is.state.ended() {
                            self.never(format!("{name} ended, and {} runs", action.name));
                        }
                    }
                    ActionState::Success => {
                        if !self.done.contains(&action.id) {
                            self.never(format!("{name}: {} is not a success", action.name));
                        }
                        self.credited.insert(action.id.clone());
                    }
                    _ => {}
                }
                let begun = action.state != ActionState::Pending;
                if begun && !all_well {
                    self.never(format!("{name}: {} before what comes first ended", action.name));
                }
                all_well &= action.state == ActionState::Success;
            }
        }
        if is.state == State::Success && !all_well {
            self.never(format!("{name} succeeded, and not all of its actions did"));
        }
        let lost = was.tasks.iter().flat_map(|task| &task.actions).find(|old| {
            let now = is.tasks.iter().flat_map(|task| &task.actions).find(|it| it.id == old.id);
            old.state == ActionState::Success
                && now.is_some_and(|now| now.state != ActionState::Success)
        });
        if let Some(lost) = lost {
            self.never(format!("{name}: {} ended well, and that was lost", lost.name));
        }
    }
}

#[cfg(test)]
mod tests;
