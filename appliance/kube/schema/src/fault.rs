//! Mistakes in a value, before the value's path in the object is known.

use serde_json::Value;

use crate::field_error::{FieldError, MAX_SHOWN_BYTES, NO_PATH, cut};

/// Maximum number of mistakes that one check reports, because a person would not read more.
pub(crate) const MAX_ERRORS: usize = 1_000;

/// Mistake without the path of the value in its object.
#[derive(Debug, Clone)]
pub(crate) struct Fault {
    pub message: String,
    kind: FaultKind,
}

#[derive(Debug, Clone)]
enum FaultKind {
    /// Mistake in `allOf`, `anyOf`, `oneOf` or `not`, which upstream reports without a field.
    Nowhere,
    At {
        path: String,
        error: FieldError,
    },
}

impl Fault {
    pub fn nowhere(message: String) -> Self {
        Self { message, kind: FaultKind::Nowhere }
    }

    /// Creates a mistake with the message "PATH in body WORDS", which `make` turns into an error.
    pub fn at(path: &str, words: &str, make: impl FnOnce(&str) -> FieldError) -> Self {
        let path = cut(path.to_owned(), MAX_SHOWN_BYTES);
        let message = format!("{path} in body {words}");
        let error = make(&message);
        Self { message, kind: FaultKind::At { path, error } }
    }

    pub fn invalid(path: &str, value: &Value, words: &str) -> Self {
        Self::at(path, words, |message| FieldError::invalid("", value, message))
    }

    /// Creates an invalid-value mistake as [`Self::invalid`], with the complete message `message`.
    pub fn invalid_saying(path: &str, value: &Value, message: String) -> Self {
        let message = cut(message, MAX_SHOWN_BYTES);
        let error = FieldError::invalid("", value, message.as_str());
        let path = cut(path.to_owned(), MAX_SHOWN_BYTES);
        Self { message, kind: FaultKind::At { path, error } }
    }

    pub fn type_invalid(path: &str, shown: &str, words: &str) -> Self {
        let shown = cut(shown.to_owned(), MAX_SHOWN_BYTES);
        let words = format!("must be of type {words}: {}", go_text::quoted(&shown));
        let shown = Value::from(shown);
        Self::at(path, &words, |message| FieldError::type_invalid("", &shown, message))
    }
}

/// Result of a check. Of failed alternatives, the one with the most passed checks is reported.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub faults: Vec<Fault>,
    pub held: u64,
}

impl Outcome {
    pub fn failed(fault: Fault) -> Self {
        Self { faults: vec![fault], held: 0 }
    }

    pub fn add(&mut self, fault: Fault) {
        let is_known = self.is_full() || self.faults.iter().any(|one| one.message == fault.message);
        if !is_known {
            self.faults.push(fault);
        }
    }

    pub fn merge(&mut self, other: Outcome) {
        self.held = self.held.saturating_add(other.held);
        for fault in other.faults {
            self.add(fault);
        }
    }

    /// Returns true if the outcome has the maximum number of mistakes.
    pub fn is_full(&self) -> bool {
        self.faults.len() >= MAX_ERRORS
    }

    pub fn is_valid(&self) -> bool {
        self.faults.is_empty()
    }
}

/// Converts faults to errors. `prefix` is the path of the checked value; empty for the object.
pub(crate) fn field_errors(prefix: &str, outcome: Outcome) -> Vec<FieldError> {
    let root = if prefix.is_empty() { NO_PATH } else { prefix };
    let place = |fault: Fault| match fault.kind {
        FaultKind::Nowhere => FieldError::invalid(root, &Value::from(""), fault.message),
        FaultKind::At { path, mut error } => {
            let path = path.trim_start_matches('.');
            error.field = match (path.is_empty(), prefix.is_empty()) {
                (true, _) => root.to_owned(),
                (false, true) => path.to_owned(),
                (false, false) => format!("{prefix}.{path}"),
            };
            error
        }
    };
    outcome.faults.into_iter().map(place).collect()
}
