//! Errors of the agent, as sentences for the operator in the workflow's status.

use std::io;

/// Error of an action, or of the agent's start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The action is not built in, and the agent has no registry for container images.
    #[error("there is no built-in action for image {image:?}; the built-in actions are {known}")]
    UnknownAction {
        /// Image name from the template.
        image: String,
        /// Names of the built-in actions.
        known: String,
    },
    /// The container image cannot be run.
    #[error("cannot run the image {image:?}: {reason}")]
    Image {
        /// Image name from the template.
        image: String,
        /// Reason, as a clause for the message.
        reason: String,
    },
    /// A required variable of the action is missing or empty.
    #[error(
        "{action} needs {name} in its environment, but has {}; an action of another publisher may \
         have the same name and other settings",
        if given.is_empty() { "nothing" } else { given.as_str() }
    )]
    MissingSetting {
        /// Name of the action.
        action: &'static str,
        /// Name of the missing variable.
        name: &'static str,
        /// Names of the variables that the action has.
        given: String,
    },
    /// A variable of the action has an invalid value.
    #[error("{action} cannot use {name}: {reason}")]
    BadSetting {
        /// Name of the action.
        action: &'static str,
        /// Name of the variable.
        name: &'static str,
        /// Reason why the value is invalid.
        reason: String,
    },
    /// An operation on a disk or a download failed.
    #[error(transparent)]
    Imaging(#[from] imaging::Error),
    /// A system call failed.
    #[error("cannot {doing}")]
    Io {
        /// Failed operation and its object, as the words after "cannot".
        doing: String,
        /// Error of the kernel.
        #[source]
        source: io::Error,
    },
    /// A required argument of the kernel command line is missing or invalid.
    #[error("the kernel command line has no valid {name}: {reason}")]
    CommandLine {
        /// Name of the argument.
        name: &'static str,
        /// Reason why the argument is unusable.
        reason: String,
    },
    /// The network could not be configured.
    #[error("cannot configure the network")]
    Network(#[source] platform::Error),
    /// The client of the workflow service cannot be built: the address, the token or TLS is
    /// unusable.
    #[error("cannot set up the client of the workflow service")]
    Service(#[source] agent_rpc::client::Error),
    /// The action would restart the machine, but the agent is not process 1 and must not.
    #[error("cannot restart the machine: this agent is not process 1 of the machine")]
    Guest,
    /// The action was stopped before its end.
    #[error("the action was stopped")]
    Stopped,
}

impl Error {
    /// Returns a closure for `map_err` that builds [`Error::Io`] with the failed operation.
    pub(crate) fn io<E: Into<io::Error>>(doing: impl Into<String>) -> impl FnOnce(E) -> Self {
        let doing = doing.into();
        move |source| Self::Io { doing, source: source.into() }
    }
}
