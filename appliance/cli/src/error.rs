//! Errors for people at a shell: a line with attempt, object and cause, and a line with a hint.

mod exit;

use std::io;
use std::time::Duration;

use box_client::ClientError;
use box_flash::FlashError;
use image_catalog::CatalogError;
use machine_actions::ActionError;
use stdx::Hint as _;
use template_library::LibraryError;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A request, a lookup or the kubeconfig failed.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The arguments do not fit together.
    #[error("{0}")]
    Usage(String),
    /// The value of an argument is not valid; the hint names valid values.
    #[error("{why}")]
    Argument { why: String, hint: String },
    /// A file cannot be read.
    #[error("cannot read {file}")]
    Read {
        /// Path of the file, or `standard input`.
        file: String,
        #[source]
        source: io::Error,
    },
    /// The content of a file is not valid for the command.
    #[error("cannot use {file}: {why}")]
    Content {
        /// Path of the file, or `standard input`.
        file: String,
        /// Cause, with the line if there is one.
        why: String,
    },
    /// The command cannot be carried out.
    #[error("cannot {what}: {why}")]
    Unable {
        /// Attempt: `run template debian`.
        what: String,
        /// Cause, as a phrase.
        why: String,
        /// Advice for the user.
        hint: &'static str,
    },
    /// The image cannot be trusted, or the disk cannot be written.
    #[error(transparent)]
    Flash(FlashError),
    /// No machine has this name or address.
    #[error("found no machine {0:?}")]
    NoMachine(String),
    /// The state of an object does not permit the operation.
    #[error("cannot {what}: {why}")]
    State {
        /// Attempt, as a phrase: `retry nuc1`.
        what: String,
        /// Cause, as a phrase.
        why: String,
        /// Advice for the user, with the actions that the state permits.
        hint: String,
    },
    /// An action on a machine was not requested.
    #[error(transparent)]
    Action(ActionError),
    /// An OS image was not read or written.
    #[error(transparent)]
    Catalog(CatalogError),
    /// The command is of older Tinkerbell, and another one does its work now.
    #[error("this command no longer exists")]
    Retired(&'static str),
    /// The box or a machine needs a person: the result of `status --check`.
    #[error("{0}")]
    NeedsPerson(String),
    /// A person ended the command by Control-C.
    #[error("interrupted")]
    Interrupted,
    /// The operation that the command waited for failed.
    #[error("{what} {how}: {why}")]
    Failed {
        /// Object of the operation: `workflow nuc1-x7k2p`.
        what: String,
        /// Way in which the operation failed: `failed`, `timed out`, `was deleted`.
        how: &'static str,
        /// Cause, as a phrase.
        why: String,
        /// Command of this program that shows more.
        look: String,
    },
    /// The operation did not end in time.
    #[error("{what} has not ended after {after}; it is still running")]
    TooLate {
        /// Name of the operation or object.
        what: String,
        /// Time that was waited.
        after: String,
        /// Command of this program that waits longer; `None` to run the same command again.
        longer: Option<String>,
    },
    /// Some of several objects were written before an error.
    #[error("{done} of {all} objects were written, then: {source}")]
    Partly {
        /// Number of objects that the box stored.
        done: usize,
        /// Number of all objects.
        all: usize,
        /// Error of the object that the box did not store.
        source: Box<Error>,
    },
    /// A file cannot be written.
    #[error("cannot write {file}")]
    Write {
        file: String,
        #[source]
        source: io::Error,
    },
    /// Standard output cannot be written.
    #[error("cannot write to standard output")]
    Output(#[source] io::Error),
}

impl From<FlashError> for Error {
    fn from(error: FlashError) -> Self {
        match error {
            FlashError::Read { file, source } => Self::Read { file, source },
            FlashError::Content { file, why } => Self::Content { file, why },
            error => Self::Flash(error),
        }
    }
}

impl From<LibraryError> for Error {
    fn from(error: LibraryError) -> Self {
        match error.hint() {
            Some(hint) => Self::Argument { why: error.to_string(), hint: hint.to_owned() },
            None => Self::Argument {
                why: error.to_string(),
                hint: "`tinbox template library` describes each".to_owned(),
            },
        }
    }
}

impl Error {
    /// Creates the error of a wait for `what` that ended after `limit`. `longer` is another command
    /// that waits longer.
    pub fn too_late(what: String, limit: Duration, longer: Option<String>) -> Self {
        let millis = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        Error::TooLate { what, after: stdx::seconds(millis), longer }
    }

    /// Returns advice for the user; `None` if there is none. `program` is the name of this program
    /// in the advice, `tinbox` or `tink`.
    pub fn hint(&self, program: &str) -> Option<String> {
        let text = match self {
            Error::Usage(_) => format!("`{program} --help` shows every command"),
            Error::Client(error) => error.hint(program)?,
            Error::Argument { hint, .. } => hint.clone(),
            Error::Unable { hint, .. } => (*hint).to_owned(),
            Error::Flash(error) => error.hint()?.to_owned(),
            Error::State { hint, .. } => hint.clone(),
            Error::Retired(now) => format!("use `{now}`"),
            Error::NoMachine(_) => format!(
                "`{program} machine list` shows all names; `{program} hardware push` adds a machine"
            ),
            Error::NeedsPerson(_) => format!("`{program} status` shows the reason"),
            Error::Action(error) => match error {
                ActionError::NoMachine(_) => format!("`{program} machine list` shows all names"),
                ActionError::NoWorkflow(_) | ActionError::State { .. } => {
                    format!("the state changed meanwhile: `{program} machine list` shows it")
                }
                error => error.hint()?.to_owned(),
            },
            Error::Catalog(CatalogError::Missing(_)) => {
                format!("`{program} os-image list` shows all names")
            }
            Error::Catalog(error) => error.hint()?.to_owned(),
            Error::Failed { look, .. } => format!("`{program} {look}` shows more"),
            Error::TooLate { longer, .. } => match longer {
                Some(command) => format!("`{program} {command}` waits longer"),
                None => "run the command again to wait longer, or set --timeout".to_owned(),
            },
            Error::Partly { source, .. } => return source.hint(program),
            Error::Content { .. } => "correct the file and run the command again".to_owned(),
            Error::Read { .. } | Error::Write { .. } | Error::Output(_) | Error::Interrupted => {
                return None;
            }
        };
        Some(text)
    }

    /// Returns true for a temporary failure: restart of the box, network, too many requests.
    pub fn is_passing(&self) -> bool {
        matches!(self, Error::Client(error) if error.is_passing())
    }

    /// Returns true if the reader of standard output closed the pipe, which is not an error.
    pub fn is_broken_pipe(&self) -> bool {
        matches!(self, Error::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}

#[cfg(test)]
mod tests;
