//! How far an action has come, shared between the one who works and the one who reports.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Counters that the action moves and the runner reads once a second.
#[derive(Debug, Default)]
pub struct Meter {
    done: AtomicU64,
    total: AtomicU64,
    stopped: AtomicBool,
    doing: Mutex<String>,
}

impl Meter {
    /// What is being done now, for people.
    pub fn say(&self, doing: impl Into<String>) {
        *self.doing.lock().unwrap_or_else(PoisonError::into_inner) = doing.into();
    }

    /// Bytes in all; 0 while unknown.
    pub fn set_total(&self, total: u64) {
        self.total.store(total, Ordering::Relaxed);
    }

    /// Bytes dealt with so far.
    pub fn set_done(&self, done: u64) {
        self.done.store(done, Ordering::Relaxed);
    }

    /// `(done, total, doing)`.
    pub fn read(&self) -> (u64, u64, String) {
        let doing = self.doing.lock().unwrap_or_else(PoisonError::into_inner).clone();
        (self.done.load(Ordering::Relaxed), self.total.load(Ordering::Relaxed), doing)
    }

    /// Ask blocking work to end at its next step.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Whether [`Meter::stop`] was called.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }
}
