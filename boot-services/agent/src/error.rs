//! What can go wrong, as the sentences an operator reads in the workflow's status.

use std::io;

/// A failed action or a failed step of coming up.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The action's image is not one of ours.
    #[error("no action is built in for image {image:?}; built in are {known}")]
    UnknownAction {
        /// As the template says it.
        image: String,
        /// The names that would do.
        known: String,
    },
    /// An image of a container that cannot be run.
    #[error("cannot run the image {image:?}: {reason}")]
    Image {
        /// As the template says it.
        image: String,
        /// Why not.
        reason: String,
    },
    /// A variable the action cannot do without.
    #[error(
        "{action} needs {name} in its environment, and has {}; an action of another publisher may \
         have the same name and other settings",
        if given.is_empty() { "nothing" } else { given.as_str() }
    )]
    MissingSetting {
        /// The action's name.
        action: &'static str,
        /// The variable.
        name: &'static str,
        /// Names of the variables that it has.
        given: String,
    },
    /// A variable whose value cannot be meant.
    #[error("{action} cannot use {name}: {reason}")]
    BadSetting {
        /// The action's name.
        action: &'static str,
        /// The variable.
        name: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// Work on disks failed.
    #[error(transparent)]
    Imaging(#[from] imaging::Error),
    /// A system call failed.
    #[error("cannot {doing}")]
    Io {
        /// What was attempted, with what.
        doing: String,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
    /// The kernel command line lacks something.
    #[error("the kernel command line has no usable {name}: {reason}")]
    CommandLine {
        /// The argument.
        name: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// The network did not come up.
    #[error("the network does not come up")]
    Network(#[source] platform::Error),
    /// The workflow service cannot be addressed.
    #[error("cannot use the workflow service")]
    Service(#[source] agent_rpc::client::Error),
    /// The action would take away a machine that somebody else runs.
    #[error("this agent is not the machine's first process and leaves it running")]
    Guest,
    /// The action was told to stop.
    #[error("the action was stopped")]
    Stopped,
}

impl Error {
    /// For `map_err`: an [`Error::Io`] that says what was attempted.
    pub(crate) fn io<E: Into<io::Error>>(doing: impl Into<String>) -> impl FnOnce(E) -> Self {
        let doing = doing.into();
        move |source| Self::Io { doing, source: source.into() }
    }
}
