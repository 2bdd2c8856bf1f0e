//! What can go wrong while a virtual rack is built, used or taken down.

use std::io;
use std::path::Path;
use std::time::Duration;

/// One thing this machine lacks, why the rack needs it, and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// The program, file or privilege.
    pub what: String,
    /// What the rack uses it for.
    pub why: &'static str,
    /// Where it comes from, as a sentence fragment (`apt-get install ovmf`).
    pub from: String,
}

/// An error of the rack harness.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// This machine cannot carry a rack; the list is complete.
    #[error("this machine cannot carry a virtual rack:{}", list(.0))]
    Preflight(Vec<Missing>),
    /// The caller asks for something that cannot be.
    #[error("{0}")]
    Config(String),
    /// A file, socket or process operation failed.
    #[error("{attempted}")]
    Io {
        /// What was attempted with what.
        attempted: String,
        /// The operating system's answer.
        #[source]
        source: io::Error,
    },
    /// A program ran and failed.
    #[error("run `{command}`: {outcome}")]
    Command {
        /// Program and arguments; secrets never travel there.
        command: String,
        /// Exit status and what it wrote to standard error.
        outcome: String,
    },
    /// QEMU refused or never answered a monitor command.
    #[error("ask QEMU for {command}: {answer}")]
    Qmp {
        /// The monitor command.
        command: String,
        /// QEMU's description, or how the conversation ended.
        answer: String,
    },
    /// The operation needs a running (or a switched off) machine and it is not.
    #[error("{attempted} on NUC {number}: {state}")]
    Power {
        /// What was attempted.
        attempted: &'static str,
        /// The NUC's number, from 1.
        number: u8,
        /// Why that is impossible now.
        state: String,
    },
    /// Something awaited did not happen.
    #[error("waited {after:?} for {what} in vain{seen}")]
    Deadline {
        /// What was awaited.
        what: String,
        /// For how long.
        after: Duration,
        /// What was seen instead, ready to print; may be empty.
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
