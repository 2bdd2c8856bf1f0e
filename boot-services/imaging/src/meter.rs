//! Progress of an action, shared by the action and the task that reports to the box.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum number of unreported output lines. The oldest lines are dropped first.
const WAITING_MAX: usize = 1000;

/// Progress of one action. The action writes; the runner reads once a second.
#[derive(Debug, Default)]
pub struct Meter {
    done: AtomicU64,
    total: AtomicU64,
    stopped: AtomicBool,
    doing: Mutex<String>,
    /// Reason of the current wait for a server; empty without a wait.
    waiting: Mutex<String>,
    printed: Mutex<PrintedLines>,
}

/// Copy of a meter's values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MeterReading {
    /// Number of processed bytes.
    pub done: u64,
    /// Total number of bytes; 0 if unknown.
    pub total: u64,
    /// Current step, as text for the operator.
    pub doing: String,
}

#[derive(Debug, Default)]
struct PrintedLines {
    waiting: VecDeque<String>,
    lost: usize,
}

impl Meter {
    /// Sets the text of the current step, for the operator.
    pub fn say(&self, doing: impl Into<String>) {
        *self.doing.lock().unwrap_or_else(PoisonError::into_inner) = doing.into();
    }

    /// Sets the reason of a wait for a server. An empty reason ends the wait.
    pub fn wait(&self, reason: impl Into<String>) {
        *self.waiting.lock().unwrap_or_else(PoisonError::into_inner) = reason.into();
    }

    /// Sets the total number of bytes; 0 if unknown.
    pub fn set_total(&self, total: u64) {
        self.total.store(total, Ordering::Relaxed);
    }

    /// Sets the number of processed bytes.
    pub fn set_done(&self, done: u64) {
        self.done.store(done, Ordering::Relaxed);
    }

    /// Returns the reason of the current wait for a server; `None` without a wait.
    pub fn waiting(&self) -> Option<String> {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        (!waiting.is_empty()).then(|| waiting.clone())
    }

    /// Returns the byte counts and the current step.
    pub fn read(&self) -> MeterReading {
        MeterReading {
            done: self.done.load(Ordering::Relaxed),
            total: self.total.load(Ordering::Relaxed),
            doing: self.doing.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }

    /// Adds a line of a program's output.
    pub fn print(&self, line: String) {
        let mut printed = self.printed.lock().unwrap_or_else(PoisonError::into_inner);
        if printed.waiting.len() == WAITING_MAX {
            printed.waiting.pop_front();
            printed.lost += 1;
        }
        printed.waiting.push_back(line);
    }

    /// Removes and returns up to `max` unreported lines, oldest first. If lines were dropped, the
    /// first returned line says how many.
    pub fn take_printed(&self, max: usize) -> Vec<String> {
        let mut printed = self.printed.lock().unwrap_or_else(PoisonError::into_inner);
        let lost = std::mem::take(&mut printed.lost);
        let lost = (lost > 0).then(|| format!("({lost} lines were dropped)"));
        let count = printed.waiting.len().min(max.saturating_sub(lost.iter().len()));
        lost.into_iter().chain(printed.waiting.drain(..count)).collect()
    }

    /// Requests that blocking work ends at its next step.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Returns true after a call of [`Meter::stop`].
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }
}

/// Guard that calls [`Meter::stop`] on drop, for a future that waits for blocking work.
#[derive(Debug)]
pub struct StopOnDrop(pub Arc<Meter>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}

#[cfg(test)]
mod tests {
    use super::{Meter, WAITING_MAX};

    #[test]
    fn lines_are_told_once_in_order_and_lost_ones_are_counted() {
        let meter = Meter::default();
        for number in 0..WAITING_MAX + 3 {
            meter.print(number.to_string());
        }
        assert_eq!(meter.take_printed(3), ["(3 lines were dropped)", "3", "4"]);
        assert_eq!(meter.take_printed(2), ["5", "6"]);
        let rest = meter.take_printed(usize::MAX);
        assert_eq!((rest.len(), rest.last().unwrap().as_str()), (WAITING_MAX - 4, "1002"));
        assert!(meter.take_printed(1).is_empty());
    }
}
