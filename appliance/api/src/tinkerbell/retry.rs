//! Fields that Tinbox adds to upstream's Workflow: attempts, history and requests. A client that
//! drops these unknown keys does no harm. Without them, a Workflow runs once, as with upstream.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::workflow::{ActionState, State, is_zero};

/// Annotation that requests another attempt; each new value is a new request.
pub const RETRY_REQUEST: &str = "tinbox.dev/retry";
/// Annotation with the first action of the requested attempt: `failed` or `start` ([`RetryFrom`]).
pub const RETRY_FROM: &str = "tinbox.dev/retry-from";
/// Annotation that requests the end of the Workflow; each new value is a new request.
pub const CANCEL_REQUEST: &str = "tinbox.dev/cancel";

/// Rule for further attempts after a failure.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Retry {
    /// Maximum number of attempts, including the first. 0 and 1 mean that no attempt follows.
    pub attempts: i64,
    /// Wait in seconds before attempt 2; doubles with each attempt, up to 3600. 0 means 10.
    #[serde(skip_serializing_if = "is_zero")]
    pub backoff_seconds: i64,
    /// First action of a new attempt.
    pub from: RetryFrom,
}

/// First action of a new attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RetryFrom {
    /// The action that did not succeed; actions that succeeded are not repeated.
    #[default]
    Failed,
    /// The first action of the Workflow.
    Start,
}

impl RetryFrom {
    /// Returns the value as in the annotation and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Start => "start",
        }
    }

    /// Parses the output of [`RetryFrom::as_str`]; `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Failed, Self::Start].into_iter().find(|from| from.as_str() == text)
    }
}

/// Time and reason of the end of a Workflow.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkflowEnd {
    /// Time of the end, by the box's clock.
    pub time: Timestamp,
    /// Machine-readable reason of the end; its spelling never changes.
    pub reason: String,
    /// Description of the end, one sentence for a person.
    pub message: String,
}

/// Ended attempt of a Workflow.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Attempt {
    /// Number of the attempt, from 1.
    pub attempt: i64,
    /// State in which the attempt ended.
    pub state: State,
    /// Machine-readable reason of the end; its spelling never changes.
    pub reason: String,
    /// Description of the end, one sentence for a person.
    pub message: String,
    /// Time at which the attempt ended.
    pub time: Timestamp,
}

/// Ended attempt of an action.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ActionAttempt {
    /// ID of the action in this attempt; late reports carry it.
    pub id: String,
    /// State in which the attempt ended.
    pub state: ActionState,
    /// Message of the agent or of the box.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Time at which the attempt began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution_start: Option<Timestamp>,
    /// Time at which the attempt ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution_stop: Option<Timestamp>,
}

/// Last requests that the box executed. The record prevents a second execution of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Requests {
    /// Last value of [`RETRY_REQUEST`] that the box executed; empty if none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub retry: String,
    /// Last value of [`CANCEL_REQUEST`] that the box executed; empty if none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cancel: String,
}

impl Requests {
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
