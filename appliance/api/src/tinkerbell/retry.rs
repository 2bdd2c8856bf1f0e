//! Fields of a Workflow that Tinbox adds to upstream's: attempts, history and requests. Clients may
//! drop these unknown keys without harm. A Workflow without them runs once, as upstream runs it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::workflow::{ActionState, State, is_zero};

/// Annotation that asks for another attempt; each new value asks once.
pub const RETRY_REQUEST: &str = "tinbox.dev/retry";
/// Annotation that says where that attempt begins: `failed` or `start`.
pub const RETRY_FROM: &str = "tinbox.dev/retry-from";
/// Annotation that asks for the end; each new value asks once.
pub const CANCEL_REQUEST: &str = "tinbox.dev/cancel";

/// Rule for further attempts after a failure.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Retry {
    /// Maximum number of attempts, including the first. With 0 or 1, a failed Workflow is not
    /// repeated.
    pub attempts: i64,
    /// Wait in seconds before the second attempt; it doubles with each attempt. 0 means the
    /// default.
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
    /// Value as in the annotation and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Start => "start",
        }
    }

    /// Parses the output of [`RetryFrom::as_str`].
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
    /// Stable code for programs.
    pub reason: String,
    /// Sentence for a person.
    pub message: String,
}

/// Attempt that has ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Attempt {
    /// Number of the attempt, from 1.
    pub attempt: i64,
    /// State in which the attempt ended.
    pub state: State,
    /// Stable code for programs.
    pub reason: String,
    /// Sentence for a person.
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

/// Last requests that were carried out, so that the box carries out none twice.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Requests {
    /// Last value of [`RETRY_REQUEST`] that was carried out.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub retry: String,
    /// Last value of [`CANCEL_REQUEST`] that was carried out.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cancel: String,
}

impl Requests {
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
