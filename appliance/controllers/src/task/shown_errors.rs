//! Memory of the errors that running Tasks have shown, so that each error is shown once.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use api::meta::ObjectKey;

/// Maximum number of different errors that are shown for one Task.
const ERRORS_MAX: usize = 8;

/// Errors that were shown, by Task.
#[derive(Debug, Default)]
pub struct ShownErrors(Mutex<HashMap<ObjectKey, Vec<String>>>);

impl ShownErrors {
    fn tasks(&self) -> MutexGuard<'_, HashMap<ObjectKey, Vec<String>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records an error. Returns true if the error is new for the Task, and within the limit.
    pub fn add(&self, task: &ObjectKey, error: &str) -> bool {
        let mut tasks = self.tasks();
        let errors = tasks.entry(task.clone()).or_default();
        let is_new = errors.len() < ERRORS_MAX && errors.iter().all(|it| it != error);
        if is_new {
            errors.push(error.to_owned());
        }
        is_new
    }

    /// Removes the errors of a Task that was deleted or has ended.
    pub fn forget(&self, task: &ObjectKey) {
        self.tasks().remove(task);
    }
}

#[cfg(test)]
mod tests {
    use api::meta::ObjectKey;

    use super::{ERRORS_MAX, ShownErrors};

    #[test]
    fn each_error_is_new_once_and_their_number_is_limited() {
        let (errors, key) = (ShownErrors::default(), ObjectKey::new("default", "t"));
        for at in 0..ERRORS_MAX {
            assert!(errors.add(&key, &at.to_string()));
            assert!(!errors.add(&key, "0"));
        }
        assert!(!errors.add(&key, "one more"));
        errors.forget(&key);
        assert!(errors.add(&key, "0"));
    }
}
