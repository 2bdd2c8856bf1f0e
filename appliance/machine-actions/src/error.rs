//! Errors of the actions, as sentences for the person who requested one.

use api::tinkerbell::State;
pub use image_catalog::FieldError;
use objects::ObjectError;
use status::words;
use stdx::Hint;
use thiserror::Error;

/// Reason why an action was not requested. Nothing was changed.
#[derive(Debug, Error)]
pub enum ActionError {
    /// No Hardware has this name.
    #[error("machine {0} no longer exists")]
    NoMachine(String),
    /// Hardware in several namespaces has this name.
    #[error("several machines are called {name}: {keys}")]
    Ambiguous {
        /// Name of the machines.
        name: String,
        /// Their namespaces and names, separated by commas.
        keys: String,
    },
    /// The workflow of the request does not exist.
    #[error("workflow {0} no longer exists")]
    NoWorkflow(String),
    /// The workflow of the request belongs to another machine.
    #[error("workflow {workflow} is not of machine {machine}")]
    OtherMachine {
        /// Name of the workflow.
        workflow: String,
        /// Name of the machine.
        machine: String,
    },
    /// The state of the workflow does not permit the action.
    #[error("cannot {action} workflow {workflow}: its state is {}", words::workflow(*.state).text)]
    State {
        /// Word of the action.
        action: &'static str,
        /// Name of the workflow.
        workflow: String,
        /// State of the workflow.
        state: State,
    },
    /// The Hardware has no power control.
    #[error("{0} has no power control")]
    NoBmc(String),
    /// A machine of Cluster API has the Hardware.
    #[error("{machine} belongs to machine {owner} of Cluster API")]
    Owned {
        /// Name of the Hardware.
        machine: String,
        /// Name of the machine of Cluster API.
        owner: String,
    },
    /// Only an unknown machine can be ignored.
    #[error("{0} is not the MAC address of an unknown machine, so it cannot be ignored")]
    IsKnown(String),
    /// The action needs the form of an installation.
    #[error("{0} needs its form")]
    NeedsForm(&'static str),
    /// Fields of the form are not valid.
    #[error("{}", .0.iter().map(|it| it.why.as_str()).collect::<Vec<_>>().join(" "))]
    Fields(Vec<FieldError>),
    /// The template of the form cannot be used for this machine.
    #[error("template {name} cannot be used for this machine: {why}")]
    Template {
        /// Name of the template.
        name: String,
        /// Error of the template engine or of the workflow, as a phrase.
        why: String,
    },
    /// An object could not be read or written.
    #[error(transparent)]
    Object(#[from] ObjectError),
}

impl Hint for ActionError {
    fn hint(&self) -> Option<&str> {
        Some(match self {
            Self::NoMachine(_) | Self::NoWorkflow(_) | Self::State { .. } => "reload the page",
            Self::Ambiguous { .. } => "use the command line with --namespace",
            Self::Owned { .. } => "delete the Machine in the management cluster first",
            Self::NoBmc(_) => "set spec.bmcRef of its Hardware to a Machine, or press its button",
            Self::Template { .. } => "correct the template, or choose another one",
            Self::IsKnown(_) => "delete its Hardware to remove the machine",
            Self::Object(error) => return error.hint(),
            Self::OtherMachine { .. } | Self::NeedsForm(_) | Self::Fields(_) => return None,
        })
    }
}
