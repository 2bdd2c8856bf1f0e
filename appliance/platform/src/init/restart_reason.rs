//! Reason of the last restart, which process 1 wrote before the restart or the kernel kept.

use std::path::Path;
use std::process::Command;

use super::STATE;
use super::pstore;
use crate::error::one_line;

/// File on the state volume with the reason, for the next run of process 1.
const FILE: &str = "last-restart";
/// Maximum length of a reason in bytes: less than a sector, which can be overwritten on a full
/// disk.
const SENTENCE_MAX: usize = 480;
/// Environment variables for the supervisor. Their values stay the same until the machine restarts.
const RESTART: &str = "TINBOX_LAST_RESTART";
const PANIC: &str = "TINBOX_LAST_PANIC";
/// Folder in which the kernel shows the records of its last panic.
const PSTORE: &str = "/sys/fs/pstore";

/// Returns the reason why process 1 restarted the machine itself, if that was its last action: `the
/// supervisor hangs: the API stuck 61 s`. The value stays the same until the machine restarts.
pub fn last_restart() -> Option<String> {
    std::env::var(RESTART).ok()
}

/// Returns the reason of a kernel panic, if the previous run ended with a panic: `Attempted to kill
/// init! exitcode=0x00000009`. The last kernel messages are in [`STATE`]`/last-panic`.
pub fn last_panic() -> Option<String> {
    std::env::var(PANIC).ok()
}

/// Stores the reason before process 1 restarts the machine.
pub(super) fn note(sentence: &str) {
    let end = sentence.floor_char_boundary(SENTENCE_MAX);
    let kept = durable_file::replace(Path::new(STATE), FILE, &sentence.as_bytes()[..end]);
    if let Err(error) = kept {
        eprintln!("tinbox: cannot save the reason: {error}");
    }
}

/// Reasons of the last restart. Taking the reasons removes them from the disk.
#[derive(Debug, Default)]
pub(super) struct LastRestart {
    restart: Option<String>,
    panic: Option<String>,
}

impl LastRestart {
    pub(super) fn take() -> Self {
        let kept = durable_file::take(Path::new(STATE), FILE, SENTENCE_MAX as u64);
        let kept = kept.unwrap_or_else(|error| {
            eprintln!("tinbox: cannot read why the machine was restarted: {error}");
            None
        });
        let restart = kept.map(|sentence| one_line(&String::from_utf8_lossy(&sentence)));
        let panic = pstore::take(Path::new(PSTORE), Path::new(STATE));
        let panic = panic.map(|panic| one_line(&panic.reason));
        Self { restart, panic }
    }

    /// Returns the reasons as sentences for the owner.
    pub(super) fn sentences(&self) -> Vec<String> {
        let restart = self.restart.iter().map(|why| format!("the box restarted itself: {why}"));
        let panic = self.panic.iter().map(|why| format!("restarted after a kernel panic: {why}"));
        restart.chain(panic).collect()
    }

    /// Returns the reason of the panic or restart, or `None` if the previous run ended in order.
    pub(super) fn reason(&self) -> Option<&str> {
        self.panic.as_deref().or(self.restart.as_deref())
    }

    /// Sets the environment variables for [`last_restart`] and [`last_panic`].
    pub(super) fn set_environment(&self, supervisor: &mut Command) {
        for (name, value) in [(RESTART, &self.restart), (PANIC, &self.panic)] {
            if let Some(value) = value {
                supervisor.env(name, value);
            }
        }
    }
}
