//! Warnings to the client that writes an object.

use std::sync::{Arc, Mutex, PoisonError};

/// Maximum warnings in one response, even for a body with a million unknown fields.
pub const MAX_WARNINGS: usize = 64;

/// Warnings to the client (`Warning` headers of the response); clones share one list.
#[derive(Debug, Clone, Default)]
pub struct Warnings(Arc<Mutex<Vec<String>>>);

impl Warnings {
    /// Adds a warning, unless it is a duplicate or `MAX_WARNINGS` is reached.
    pub fn add(&self, text: impl Into<String>) {
        let text = text.into();
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() < MAX_WARNINGS && !all.contains(&text) {
            all.push(text);
        }
    }

    /// Removes and returns all collected warnings.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
