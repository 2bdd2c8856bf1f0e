//! Latest syslog lines of a machine, which the box keeps in memory, and lines of the audit log.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Syslog line in the response to a GET of
/// `/apis/tinbox.dev/v1alpha1/namespaces/NS/hardware/NAME/log`, which lists the oldest line first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LogLine {
    /// Time at which the box received the line.
    pub received: Timestamp,
    /// Syslog severity (RFC 5424): `err`, `warning`, `info`; empty if not given.
    pub severity: String,
    /// Program that wrote the line; may be empty.
    pub program: String,
    /// Text of the line.
    pub text: String,
}

impl LogLine {
    /// Returns true for severity `warning` and higher.
    pub fn warning(&self) -> bool {
        matches!(self.severity.as_str(), "emerg" | "alert" | "crit" | "err" | "warning")
    }
}

/// Record of the audit log, as pages and the API show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditLine {
    /// Time of the request.
    pub at: Timestamp,
    /// Name of the user; of the impersonated user too, if any.
    pub user: String,
    /// Verb and object, or method and path.
    pub request: String,
    /// IP address of the client, or the place of a local action.
    pub from: String,
    /// HTTP status of the response.
    pub code: u16,
    /// True if the request was refused or failed.
    pub failed: bool,
}

impl AuditLine {
    /// Returns the result of the request as a word.
    pub fn result(&self) -> &'static str {
        match self.code {
            401 | 403 | 429 => "refused",
            400..=499 => "not possible",
            500.. => "failed",
            _ => "done",
        }
    }
}
