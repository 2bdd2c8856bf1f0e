//! What must never happen, looked at with every action that a machine begins and every write of a
//! workflow's status.

use std::collections::{HashMap, HashSet};

use api::tinkerbell::{ActionState, State, Workflow};
use serde_json::Value;

/// What was seen.
#[derive(Default)]
pub struct Ledger {
    /// Actions that were allowed to begin: the box wrote that they run.
    allowed: HashSet<String>,
    /// How often each was begun by its machine.
    begun: HashMap<String, usize>,
    /// Actions that their machine truly ended well.
    done: HashSet<String>,
    /// Actions of which the box wrote that they ended well.
    credited: HashSet<String>,
    violation: Option<String>,
}

fn read(object: &Value) -> Workflow {
    serde_json::from_value(object.clone()).expect("what controllers write can be read")
}

impl Ledger {
    /// The first thing that must never happen, if it did.
    pub fn violation(&self) -> Option<String> {
        self.violation.clone()
    }

    /// Actions begun by all machines.
    pub fn begun(&self) -> usize {
        self.begun.values().sum()
    }

    fn never(&mut self, what: String) {
        self.violation.get_or_insert(what);
    }

    /// A machine begins an action.
    pub fn begins(&mut self, machine: &str, id: &str, name: &str) {
        if self.credited.contains(id) {
            self.never(format!("{machine} begins {name} again, which ended well"));
        }
        if !self.allowed.contains(id) {
            self.never(format!("{machine} begins {name}, and no workflow says that it runs"));
        }
        *self.begun.entry(id.to_owned()).or_default() += 1;
    }

    /// A machine ended an action well.
    pub fn ends(&mut self, id: &str) {
        self.done.insert(id.to_owned());
    }

    /// A machine is switched by its controller; `is_wanted` while it has a workflow.
    pub fn switched(&mut self, machine: &str, is_wanted: bool) {
        if !is_wanted {
            self.never(format!("{machine} is switched, and no workflow is to be done to it"));
        }
    }

    /// A workflow's status was written.
    pub fn committed(&mut self, before: &Value, after: &Value) {
        let (before, after) = (read(before), read(after));
        let name = &after.metadata.name;
        let (was, is) = (&before.status, &after.status);
        if was.state.ended() && was.attempts == is.attempts && was.state != is.state {
            self.never(format!("{name} was {:?} and is {:?} in one attempt", was.state, is.state));
        }
        let mut all_well = true;
        for action in is.tasks.iter().flat_map(|task| &task.actions) {
            match action.state {
                ActionState::Running => {
                    self.allowed.insert(action.id.clone());
                }
                ActionState::Success => {
                    if !self.done.contains(&action.id) {
                        self.never(format!("{name}: {} is no success", action.name));
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
