//! Table of the actions: name, effect, loss, confirmation, and the rights that an action needs.

use api::bmc::{JOB, PowerAction};
use api::core::CONFIG_MAP;
use api::meta::Resource;
use api::tinkerbell::{HARDWARE, TEMPLATE, WORKFLOW};

/// Action on one machine, requested by a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// Installs an operating system, by a Template and a Workflow.
    Install,
    /// Creates the Hardware of an unknown machine, so that the machine boots the agent.
    Add,
    /// Removes an unknown machine from the list of new machines.
    Ignore,
    /// Continues the failed workflow at the action that failed.
    Retry,
    /// Runs the failed workflow again from its first action.
    StartOver,
    /// Ends the running workflow.
    Cancel,
    /// Starts no further action of the workflow.
    Pause,
    /// Continues a paused workflow.
    Resume,
    /// Switches the machine on.
    PowerOn,
    /// Requests a shutdown of the machine's operating system.
    ShutDown,
    /// Switches the machine off without a shutdown.
    PowerOff,
    /// Switches the machine off and on without a shutdown.
    PowerCycle,
    /// Removes the failure of the workflow from the list of problems.
    Dismiss,
    /// Erases all disks of the machine, by a Workflow.
    Erase,
}

/// All actions, in the order in which an interface shows them.
pub const ACTIONS: [Action; 14] = [
    Action::Retry,
    Action::StartOver,
    Action::Install,
    Action::Add,
    Action::Ignore,
    Action::Resume,
    Action::Pause,
    Action::Cancel,
    Action::PowerOn,
    Action::ShutDown,
    Action::PowerOff,
    Action::PowerCycle,
    Action::Dismiss,
    Action::Erase,
];

/// Confirmation that an interface requires before it sends the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confirmation {
    /// The action loses nothing: no confirmation.
    None,
    /// A second step that shows the effect.
    Effect,
    /// A form with settings, whose button names the effect.
    Form,
    /// The name of the machine, typed by the person.
    Name,
}

/// Row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Description {
    /// Name in paths and commands: `start-over`.
    pub word: &'static str,
    /// Label of a button.
    pub label: &'static str,
    /// Effect as a sentence.
    pub effect: &'static str,
    /// Loss that the action may cause, as a sentence; empty if the action loses nothing.
    pub loss: &'static str,
    /// Message after the request was stored, as a sentence.
    pub done: &'static str,
    /// Least confirmation. [`crate::confirmation`] may require more for a machine in service.
    pub confirmation: Confirmation,
    /// Rights of the person who requests the action: verb and kind, as in RBAC.
    pub needs: &'static [(&'static str, Resource)],
}

/// Right to change a Workflow.
const CHANGE_WORKFLOW: &[(&str, Resource)] = &[("patch", WORKFLOW)];
/// Right to create a Job of a BMC.
const CREATE_JOB: &[(&str, Resource)] = &[("create", JOB)];

const fn row(
    (word, label): (&'static str, &'static str),
    (effect, loss, done): (&'static str, &'static str, &'static str),
    confirmation: Confirmation,
    needs: &'static [(&'static str, Resource)],
) -> Description {
    Description { word, label, effect, loss, done, confirmation, needs }
}

impl Action {
    /// Returns the row of the table.
    pub const fn description(self) -> Description {
        match self {
            Action::Install => row(
                ("install", "Install…"),
                (
                    "Installs an operating system on the machine.",
                    "Everything on the chosen disk is erased.",
                    "The installation is requested. It begins when the machine boots from the \
                     network.",
                ),
                Confirmation::Form,
                &[
                    ("create", HARDWARE),
                    ("update", HARDWARE),
                    ("create", TEMPLATE),
                    ("create", WORKFLOW),
                ],
            ),
            Action::Add => row(
                ("add", "Add…"),
                (
                    "Adds the machine to the box. At its next network boot the machine starts the \
                     agent, which reports its hardware. No disk is changed.",
                    "",
                    "The machine is added.",
                ),
                Confirmation::Form,
                &[("create", HARDWARE)],
            ),
            Action::Erase => row(
                ("erase", "Erase"),
                (
                    "Erases every disk that the Hardware of the machine lists.",
                    "Everything on these disks is lost.",
                    "The erasure is requested. It begins when the machine boots from the network.",
                ),
                Confirmation::Name,
                &[("create", TEMPLATE), ("create", WORKFLOW)],
            ),
            Action::Ignore => row(
                ("ignore", "Ignore"),
                (
                    "Removes the machine from the list of new machines, and does not enroll it. \
                     The page Machines can show it again.",
                    "",
                    "The machine is ignored. The end of this page can show it again.",
                ),
                Confirmation::None,
                &[("create", CONFIG_MAP), ("update", CONFIG_MAP)],
            ),
            Action::Retry | Action::StartOver | Action::Dismiss => self.after_failure(),
            Action::Cancel | Action::Pause | Action::Resume => self.on_workflow(),
            _ => self.on_power(),
        }
    }

    const fn after_failure(self) -> Description {
        match self {
            Action::Retry => row(
                ("retry", "Retry"),
                (
                    "Continues the workflow at the action that failed.",
                    "",
                    "The retry is requested.",
                ),
                Confirmation::None,
                CHANGE_WORKFLOW,
            ),
            Action::StartOver => row(
                ("start-over", "Start over"),
                (
                    "Runs the workflow again from its first action.",
                    "The workflow writes its disks again.",
                    "The workflow is requested to start over.",
                ),
                Confirmation::Effect,
                CHANGE_WORKFLOW,
            ),
            _ => row(
                ("dismiss", "Dismiss"),
                (
                    "Removes the failure from the list of problems. The workflow stays as it is.",
                    "",
                    "The problem is dismissed.",
                ),
                Confirmation::None,
                CHANGE_WORKFLOW,
            ),
        }
    }

    const fn on_workflow(self) -> Description {
        match self {
            Action::Cancel => row(
                ("cancel", "Cancel"),
                (
                    "Ends the workflow and stops its running action.",
                    "A disk that was being written does not boot.",
                    "The cancellation is requested.",
                ),
                Confirmation::Effect,
                CHANGE_WORKFLOW,
            ),
            Action::Pause => row(
                ("pause", "Pause"),
                (
                    "Starts no further action of the workflow. The running action continues.",
                    "",
                    "The workflow is paused.",
                ),
                Confirmation::None,
                CHANGE_WORKFLOW,
            ),
            _ => row(
                ("resume", "Resume"),
                ("Continues the paused workflow.", "", "The workflow continues."),
                Confirmation::None,
                CHANGE_WORKFLOW,
            ),
        }
    }

    const fn on_power(self) -> Description {
        match self {
            Action::PowerOn => row(
                ("power-on", "Switch on"),
                ("Switches the machine on.", "", "Power on is requested."),
                Confirmation::None,
                CREATE_JOB,
            ),
            Action::ShutDown => row(
                ("shut-down", "Shut down"),
                (
                    "Requests a shutdown from the operating system of the machine.",
                    "Services on the machine stop.",
                    "The shutdown is requested.",
                ),
                Confirmation::Effect,
                CREATE_JOB,
            ),
            Action::PowerOff => row(
                ("power-off", "Switch off"),
                (
                    "Switches the machine off at once, without a shutdown.",
                    "Data that the machine has not written yet is lost.",
                    "Power off is requested.",
                ),
                Confirmation::Effect,
                CREATE_JOB,
            ),
            _ => row(
                ("power-cycle", "Power cycle"),
                (
                    "Switches the machine off and on, without a shutdown.",
                    "Data that the machine has not written yet is lost.",
                    "The power cycle is requested.",
                ),
                Confirmation::Effect,
                CREATE_JOB,
            ),
        }
    }

    /// Returns the action with this word.
    pub fn named(word: &str) -> Option<Self> {
        ACTIONS.into_iter().find(|action| action.description().word == word)
    }

    /// Returns the power action of a BMC's Task; `None` for an action that is not about power.
    pub const fn power(self) -> Option<PowerAction> {
        match self {
            Action::PowerOn => Some(PowerAction::On),
            Action::ShutDown => Some(PowerAction::Soft),
            Action::PowerOff => Some(PowerAction::Off),
            Action::PowerCycle => Some(PowerAction::Cycle),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
