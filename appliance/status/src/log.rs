//! Latest syslog lines of a machine, which the box keeps in memory.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// One line, as `/apis/tinbox.dev/v1alpha1/namespaces/NS/hardware/NAME/log` answers; a list of
/// them, the oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LogLine {
    /// Time at which the box received the line.
    pub received: Timestamp,
    /// Severity as in syslog: `err`, `warning`, `info`; empty if not given.
    pub severity: String,
    /// The program that spoke; may be empty.
    pub program: String,
    /// Text of the line.
    pub text: String,
}

impl LogLine {
    /// True for a severity that needs attention.
    pub fn warning(&self) -> bool {
        matches!(self.severity.as_str(), "emerg" | "alert" | "crit" | "err" | "warning")
    }
}
