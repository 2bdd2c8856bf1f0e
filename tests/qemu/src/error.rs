//! Errors of building, using and removing a virtual rack.

use std::io;
use std::path::Path;
use std::time::Duration;

/// Missing program, file or privilege of this machine, with its purpose and its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// The program, file or privilege.
    pub what: String,
    /// Purpose of the item in the rack.
    pub why: &'static str,
    /// Command or action that provides the item, such as `apt-get install ovmf`.
    pub from: String,
}

/// An error of the rack harness.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// This machine cannot run a rack; the list is complete.
    #[error("this machine cannot run a virtual rack:{}", list(.0))]
    Preflight(Vec<Missing>),
    /// The configuration or request is invalid.
    #[error("{0}")]
    Config(String),
    /// A file, socket or process operation failed.
    #[error("{attempted}")]
    Io {
        /// Attempted operation and its object.
        attempted: String,
        /// Error of the operating system.
        #[source]
        source: io::Error,
    },
    /// A program ran and failed.
    #[error("run `{command}`: {outcome}")]
    Command {
        /// Program and arguments, which never contain secrets.
        command: String,
        /// Exit status and standard error output.
        outcome: String,
    },
    /// QEMU refused a monitor command, or did not answer.
    #[error("ask QEMU for {command}: {answer}")]
    Qmp {
        /// Name of the monitor command.
        command: String,
        /// QEMU's error description, or the reason why the connection ended.
        answer: String,
    },
    /// The operation requires a NUC that is on (or off), and its state differs.
    #[error("{attempted} on NUC {number}: {state}")]
    Power {
        /// Attempted operation, as a verb phrase.
        attempted: &'static str,
        /// The NUC's number, from 1.
        number: u8,
        /// Current state that prevents the operation.
        state: String,
    },
    /// An expected event did not happen in time.
    #[error("timed out after {after:?}, waiting for {what}{seen}")]
    Deadline {
        /// The event that was expected.
        what: String,
        /// Maximum time of the wait.
        after: Duration,
        /// Observed state, ready to print; may be empty.
        seen: String,
    },
}

impl Error {
    pub(crate) fn io(attempted: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let attempted = attempted.into();
        move |source| Self::Io { attempted, source }
    }

    pub(crate) fn path(verb: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        Self::io(format!("{verb} {}", path.display()))
    }
}

fn list(missing: &[Missing]) -> String {
    missing
        .iter()
        .map(|one| format!("\n  {} is missing ({}): {}", one.what, one.why, one.from))
        .collect()
}
