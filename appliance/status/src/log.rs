//! What a machine said over syslog, as the box keeps it: some of its last lines, in memory.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// One line, as `/apis/tinbox.dev/v1alpha1/namespaces/NS/hardware/NAME/log` answers; a list of
/// them, the oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LogLine {
    /// When the box received it.
    pub received: Timestamp,
    /// How bad it is, in syslog's words: `err`, `warning`, `info`; empty when it was not said.
    pub severity: String,
    /// The program that spoke; may be empty.
    pub program: String,
    /// What it said.
    pub text: String,
}

impl LogLine {
    /// Somebody should look at it.
    pub fn warning(&self) -> bool {
        matches!(self.severity.as_str(), "emerg" | "alert" | "crit" | "err" | "warning")
    }
}
