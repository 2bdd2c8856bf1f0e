//! Failure in the four parts that every error message has.

use serde::{Deserialize, Serialize};

use super::Text;

/// Failure in four parts: attempt, object, cause and remedy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Trouble {
    /// Failed attempt: `image2disk failed`.
    pub what: Text,
    /// Object of the attempt: `nuc-07`; may be empty.
    pub on: Text,
    /// Cause, as a phrase: `checksum does not match`.
    pub why: Text,
    /// Remedy, as a sentence without a full stop.
    pub now: Text,
    /// Stable code, as in the manual: `ChecksumMismatch`; may be empty.
    pub code: Text,
}

impl Trouble {
    /// Returns all four parts: `image2disk failed on nuc-07: checksum does not match. Retry it.`
    pub fn sentence(&self) -> String {
        let mut text = self.what.to_string();
        if !self.on.is_empty() {
            text.push_str(&format!(" on {}", self.on));
        }
        if !self.why.is_empty() {
            text.push_str(&format!(": {}", self.why));
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
