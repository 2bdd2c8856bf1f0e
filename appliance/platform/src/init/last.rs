//! Why the machine was restarted, as far as somebody wrote it down before or the kernel kept it.

use std::path::Path;
use std::process::Command;

use super::STATE;
use crate::pstore;

/// On the state volume, from process 1 to its successor.
const FILE: &str = "last-restart";
/// Bytes of a sentence: fewer than a sector, so that it can be written on a full disk.
const SENTENCE_MAX: usize = 480;
/// From process 1 to the supervisor, for as long as the machine runs.
const RESTART: &str = "TINBOX_LAST_RESTART";
const PANIC: &str = "TINBOX_LAST_PANIC";
/// Where the kernel shows what it kept of its last end.
const PSTORE: &str = "/sys/fs/pstore";

/// Why process 1 restarted the machine by itself, when that was the last thing it did: `the
/// supervisor hangs: the API stuck 61 s`. The same for as long as the machine runs.
pub fn last_restart() -> Option<String> {
    std::env::var(RESTART).ok()
}

/// The kernel's own reason, when its panic was the last thing it did: `Attempted to kill init!
/// exitcode=0x00000009`. Its last lines are in [`STATE`]`/last-panic`.
pub fn last_panic() -> Option<String> {
    std::env::var(PANIC).ok()
}

/// Writes down why the machine is restarted now.
pub(super) fn note(sentence: &str) {
    let end = sentence.floor_char_boundary(SENTENCE_MAX);
    let kept = durable_file::replace(Path::new(STATE), FILE, &sentence.as_bytes()[..end]);
    if let Err(error) = kept {
        eprintln!("tinbox: cannot keep the reason: {error}");
    }
}

/// What was written down and kept, for one start only.
#[derive(Debug, Default)]
pub(super) struct Last {
    restart: Option<String>,
    panic: Option<String>,
}

impl Last {
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

    /// As sentences for the owner.
    pub(super) fn sentences(&self) -> Vec<String> {
        let restart = self.restart.iter().map(|why| format!("the box restarted itself: {why}"));
        let panic = self.panic.iter().map(|why| format!("restarted after a kernel panic: {why}"));
        restart.chain(panic).collect()
    }

    /// Why the run before ended, if it did so badly.
    pub(super) fn reason(&self) -> Option<&str> {
        self.panic.as_deref().or(self.restart.as_deref())
    }

    /// For [`last_restart`] and [`last_panic`].
    pub(super) fn tell(&self, supervisor: &mut Command) {
        for (name, value) in [(RESTART, &self.restart), (PANIC, &self.panic)] {
            if let Some(value) = value {
                supervisor.env(name, value);
            }
        }
    }
}

/// Variables and the lines of trouble hold one line each, and no NUL.
pub(super) fn one_line(text: &str) -> String {
    text.chars().map(|char| if char.is_control() { ' ' } else { char }).collect()
}
