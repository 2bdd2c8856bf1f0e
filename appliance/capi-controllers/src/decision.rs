//! Result of a decision: steps to execute, and the wait until the next decision.

use std::time::Duration;

/// Steps to execute in order, and the wait until the next decision.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision<S> {
    /// Steps in the order of execution.
    pub steps: Vec<S>,
    /// Wait until the next decision; `None` to wait for a signal.
    pub requeue: Option<Duration>,
}

impl<S> Default for Decision<S> {
    fn default() -> Self {
        Self { steps: Vec::new(), requeue: None }
    }
}
