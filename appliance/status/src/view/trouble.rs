//! Failure in the parts that every error message has.

use serde::{Deserialize, Serialize};

use super::Text;

/// Failure in four parts: attempt, object, cause and remedy; or usual causes for an unknown cause.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Trouble {
    /// Failed attempt: `image2disk failed`.
    pub what: Text,
    /// Object of the attempt: `nuc-07`; may be empty.
    pub on: Text,
    /// Cause, as a phrase: `checksum does not match`.
    pub why: Text,
    /// Usual causes, as phrases, most frequent first, if the cause itself is not known.
    pub causes: Vec<Text>,
    /// Remedy, as a sentence without a full stop.
    pub now: Text,
    /// Stable code, as in the manual: `ChecksumMismatch`; may be empty.
    pub code: Text,
}

impl Trouble {
    /// Returns the failure without its usual causes, for an interface that lists them.
    pub fn without_causes(&self) -> Self {
        Self { causes: Vec::new(), ..self.clone() }
    }

    /// Returns all parts: `image2disk failed on nuc-07: checksum does not match. Retry it.`
    pub fn sentence(&self) -> String {
        let mut text = self.what.to_string();
        if !self.on.is_empty() {
            text.push_str(&format!(" on {}", self.on));
        }
        if !self.why.is_empty() {
            text.push_str(&format!(": {}", self.why));
        }
        if !self.causes.is_empty() {
            let causes: Vec<&str> = self.causes.iter().map(Text::as_str).collect();
            text.push_str(&format!("; usual causes: {}", causes.join("; ")));
        }
        if !text.ends_with('?') {
            text.push('.');
        }
        if !self.now.is_empty() {
            text.push_str(&format!(" {}.", self.now));
        }
        text
    }
}
