//! What a Workflow carries beyond upstream's: attempts, their history, and requests.
//! Clients that do not know these keys keep or lose them without harm: without them a Workflow is
//! run once, as upstream runs it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::workflow::{ActionState, State, is_zero};

/// Annotation that asks for another attempt; each new value asks once.
pub const RETRY_REQUEST: &str = "tinbox.dev/retry";
/// Annotation that says where that attempt begins: `failed` or `start`.
pub const RETRY_FROM: &str = "tinbox.dev/retry-from";
/// Annotation that asks for the end; each new value asks once.
pub const CANCEL_REQUEST: &str = "tinbox.dev/cancel";

/// Whether what failed is tried again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Retry {
    /// The most attempts, the first included; 0 and 1 mean that nothing is tried again.
    pub attempts: i64,
    /// The wait before the second attempt; it doubles with each. 0 means the default.
    #[serde(skip_serializing_if = "is_zero")]
    pub backoff_seconds: i64,
    /// Where a new attempt begins.
    pub from: RetryFrom,
}

/// Where a new attempt begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RetryFrom {
    /// At the action that did not succeed; what succeeded is not done again.
    #[default]
    Failed,
    /// At the first action.
    Start,
}

impl RetryFrom {
    /// As in the annotation and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Start => "start",
        }
    }

    /// Read what [`RetryFrom::as_str`] writes.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Failed, Self::Start].into_iter().find(|from| from.as_str() == text)
    }
}

/// How a Workflow ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ended {
    /// When, by the box's clock.
    pub time: Timestamp,
    /// Stable code.
    pub reason: String,
    /// Sentence.
    pub message: String,
}

/// An attempt that ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Attempt {
    /// Which, from 1.
    pub attempt: i64,
    /// The state it ended in.
    pub state: State,
    /// Stable code.
    pub reason: String,
    /// Sentence.
    pub message: String,
    /// When it ended.
    pub time: Timestamp,
}

/// An attempt of an action that ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ActionAttempt {
    /// The id it had: late reports carry it.
    pub id: String,
    /// The state it ended in.
    pub state: ActionState,
    /// What the agent or the box said.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// When it began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution_start: Option<Timestamp>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution_stop: Option<Timestamp>,
}

/// The requests that were answered last, so that none is answered twice.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Requests {
    /// Value of [`RETRY_REQUEST`].
    #[serde(skip_serializing_if = "String::is_empty")]
    pub retry: String,
    /// Value of [`CANCEL_REQUEST`].
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cancel: String,
}

impl Requests {
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
