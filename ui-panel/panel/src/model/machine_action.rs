//! Actions on one machine: those of the table that all interfaces share, as far as buttons and keys
//! permit, and the identify action.

use machine_actions::{Confirmation, confirmation, offered};
use status::view::problem::Remedy;
use status::view::{Machine, Problem, StatusView};

use super::Action;
use super::page::machine;

/// Action on one machine that a panel offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MachineAction {
    /// Row of the table of actions. Installing, adding and erasing need the page: their forms
    /// choose disks.
    Table(machine_actions::Action),
    /// Blinks the LED of the machine, by its BMC.
    Identify,
}

/// Action on one machine, with the machine and workflow that the person saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineOrder {
    /// Action to carry out.
    pub action: MachineAction,
    /// Name of the machine.
    pub machine: String,
    /// Name of the machine's workflow; empty if there was none.
    pub workflow: String,
}

impl MachineAction {
    /// Returns the permission that the action needs; `None` for an action that no panel offers.
    pub fn permission(self) -> Option<Action> {
        use machine_actions::Action as Table;
        match self {
            Self::Identify => Some(Action::MachineIdentify),
            Self::Table(Table::Retry) => Some(Action::Retry),
            Self::Table(
                Table::StartOver | Table::Cancel | Table::Pause | Table::Resume | Table::Dismiss,
            ) => Some(Action::MachineWork),
            Self::Table(Table::PowerOn | Table::ShutDown | Table::PowerOff | Table::PowerCycle) => {
                Some(Action::MachinePower)
            }
            Self::Table(Table::Install | Table::Add | Table::Ignore | Table::Erase) => None,
        }
    }

    /// Returns the label of the menu entry.
    pub fn label(self) -> &'static str {
        match self {
            Self::Table(action) => action.description().label,
            Self::Identify => "Identify",
        }
    }

    /// Returns the name of the action in logs.
    pub fn word(self) -> &'static str {
        match self {
            Self::Table(action) => action.description().word,
            Self::Identify => "identify",
        }
    }

    /// Returns the effect of the action and the loss that the action may cause, as sentences.
    pub fn effect(self) -> String {
        match self {
            Self::Table(action) => {
                let row = action.description();
                format!("{} {}", row.effect, row.loss).trim_end().to_owned()
            }
            Self::Identify => self.done().to_owned(),
        }
    }

    /// Returns a sentence about the action after the box accepted it.
    pub fn done(self) -> &'static str {
        match self {
            Self::Table(action) => action.description().done,
            Self::Identify => "The LED of the machine blinks.",
        }
    }

    /// Returns the most important sentence about the action, for a small screen: the loss, else the
    /// effect.
    pub fn warning(self) -> String {
        match self {
            Self::Table(action) if !action.description().loss.is_empty() => {
                action.description().loss.to_owned()
            }
            _ => self.effect(),
        }
    }

    /// Returns the key of the monitor's keyboard for this action. Pause and resume share a key,
    /// because a machine never has both.
    pub fn key(self) -> Option<char> {
        use machine_actions::Action as Table;
        Some(match self {
            Self::Identify => 'b',
            Self::Table(Table::Retry) => 'r',
            Self::Table(Table::StartOver) => 's',
            Self::Table(Table::Cancel) => 'c',
            Self::Table(Table::Pause | Table::Resume) => 'p',
            Self::Table(Table::Dismiss) => 'd',
            Self::Table(Table::PowerOn) => 'n',
            Self::Table(Table::ShutDown) => 'h',
            Self::Table(Table::PowerOff) => 'o',
            Self::Table(Table::PowerCycle) => 'y',
            Self::Table(Table::Install | Table::Add | Table::Ignore | Table::Erase) => return None,
        })
    }

    /// Returns the confirmation before the action: that of the table, and always one before a
    /// change of power.
    pub fn confirmation(self, machine: &Machine) -> Confirmation {
        match self {
            Self::Identify => Confirmation::None,
            Self::Table(action) => match confirmation(action, machine) {
                Confirmation::None if action.power().is_some() => Confirmation::Effect,
                other => other,
            },
        }
    }

    /// Returns the order of this action on a machine.
    pub fn order(self, machine: &Machine) -> MachineOrder {
        MachineOrder {
            action: self,
            machine: machine.name.to_string(),
            workflow: machine.workflow.to_string(),
        }
    }
}

impl MachineOrder {
    /// Returns the machine of the order with its confirmation; `None` if the machine is gone or no
    /// longer permits the action.
    pub fn confirmation(&self, view: &StatusView) -> Option<Confirmation> {
        let machine = machine(view, &self.machine)?;
        let stands = machine.workflow.as_str() == self.workflow
            && of(machine).any(|action| action == self.action);
        stands.then(|| self.action.confirmation(machine))
    }
}

/// Returns the actions that a machine permits, most useful first, as far as `allowed` has them.
pub fn permitted(machine: &Machine, allowed: &[Action]) -> Vec<MachineAction> {
    let is_allowed =
        |action: &MachineAction| action.permission().is_some_and(|it| allowed.contains(&it));
    of(machine).filter(is_allowed).collect()
}

/// Returns the retry that a panel offers for a problem; `None` if a retry is not its remedy, is not
/// allowed, or is not permitted in the state of the machine.
pub fn retry(view: &StatusView, problem: &Problem, allowed: &[Action]) -> Option<MachineOrder> {
    if problem.remedy != Remedy::Retry {
        return None;
    }
    let machine = machine(view, problem.machine.as_ref()?)?;
    let retry = MachineAction::Table(machine_actions::Action::Retry);
    permitted(machine, allowed).contains(&retry).then(|| retry.order(machine))
}

fn of(machine: &Machine) -> impl Iterator<Item = MachineAction> {
    let identify = machine.has_bmc.then_some(MachineAction::Identify);
    offered(machine).into_iter().map(MachineAction::Table).chain(identify)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use machine_actions::{ACTIONS, Confirmation};
    use status::view::machine::STATES;
    use status::view::{Machine, Power};

    use super::{MachineAction, permitted};
    use crate::draw::text::wrap;
    use crate::model::Action;
    use crate::screens::oled;

    fn machines() -> impl Iterator<Item = Machine> {
        let powers = [Power::On, Power::Off, Power::Unknown];
        let of = move |state| {
            let bare = Machine { state, has_bmc: true, ..Machine::default() };
            powers.map(|power| Machine { power, workflow: "install".into(), ..bare.clone() })
        };
        STATES.into_iter().flat_map(of)
    }

    #[test]
    fn every_action_of_the_table_without_a_form_is_offered_and_each_has_its_key() {
        let all = crate::model::ACTIONS;
        let offered: BTreeSet<_> =
            machines().flat_map(|it| permitted(&it, &all)).map(|it| it.word()).collect();
        let mut expected: BTreeSet<_> = ACTIONS.iter().map(|it| it.description().word).collect();
        // New machines, which alone can be ignored, are not on the panel.
        let others = ["install", "add", "ignore", "erase"];
        others.iter().for_each(|word| assert!(expected.remove(word)));
        expected.insert("identify");
        assert_eq!(offered, expected);
        for machine in machines() {
            let keys: Vec<_> = permitted(&machine, &all).iter().map(|it| it.key()).collect();
            let distinct: BTreeSet<_> = keys.iter().flatten().collect();
            assert_eq!(distinct.len(), keys.len(), "{keys:?} in {:?}", machine.state);
        }
    }

    #[test]
    fn a_permission_removes_its_actions_only() {
        for machine in machines() {
            let all = permitted(&machine, &crate::model::ACTIONS);
            let power = permitted(&machine, &[Action::MachinePower]);
            let is_power = |it: &MachineAction| it.permission() == Some(Action::MachinePower);
            assert_eq!(power, all.into_iter().filter(is_power).collect::<Vec<_>>());
            assert_eq!(permitted(&machine, &[]), []);
        }
    }

    #[test]
    fn power_and_losses_are_always_confirmed() {
        for machine in machines() {
            for action in permitted(&machine, &crate::model::ACTIONS) {
                let MachineAction::Table(row) = action else { continue };
                let risky = row.power().is_some() || !row.description().loss.is_empty();
                let confirmed = action.confirmation(&machine) != Confirmation::None;
                assert_eq!(risky, confirmed, "{row:?} in {:?}", machine.state);
            }
        }
    }

    #[test]
    fn a_small_screen_has_the_whole_warning() {
        for machine in machines() {
            for action in permitted(&machine, &crate::model::ACTIONS) {
                let lines = wrap(&action.warning(), oled::COLUMNS, 9);
                let is_asked = action.confirmation(&machine) != Confirmation::None;
                assert!(!is_asked || lines.len() <= 3, "{lines:?}");
            }
        }
    }
}
