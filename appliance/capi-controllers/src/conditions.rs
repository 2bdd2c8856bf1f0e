//! Conditions of objects that Cluster API reads.

use api::meta::Condition;
use jiff::Timestamp;

/// Type of the condition that sums up the state of an object.
pub const READY: &str = "Ready";
/// Type of the condition of an object that controllers must not change.
pub const PAUSED: &str = "Paused";
/// Type of the condition that is false while machines have another spec than their template.
pub const MACHINES_UP_TO_DATE: &str = "MachinesUpToDate";
/// Type of the condition that is true while the box forwards connections to a control plane.
pub const ENDPOINT_READY: &str = "ControlPlaneEndpointReady";

/// Type of the condition that is false while the box cannot reach an image of a cluster.
pub const IMAGES_REACHABLE: &str = "ImagesReachable";

/// State of one condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Type of the condition, one of the constants of this module.
    pub kind: &'static str,
    /// True for the status `True`, false for `False`.
    pub is_true: bool,
    /// Reason of the status; its spelling never changes.
    pub reason: &'static str,
    /// Description for a person; may be empty.
    pub message: String,
}

/// Generation of the object that was read, and the time of a decision about the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecisionTime {
    /// Value of `metadata.generation` of the object that was read.
    pub generation: i64,
    /// Time at which the decision was made.
    pub now: Timestamp,
}

impl Finding {
    /// Puts the condition into the list. Returns true if the status or the reason changed, which is
    /// worth an event.
    pub fn put(&self, conditions: &mut Vec<Condition>, moment: DecisionTime) -> bool {
        let status = if self.is_true { "True" } else { "False" };
        let is_same = |old: &&Condition| old.status == status && old.reason == self.reason;
        let is_news = find(conditions, self.kind).filter(is_same).is_none();
        let condition = Condition {
            kind: self.kind.to_owned(),
            status: status.to_owned(),
            observed_generation: moment.generation,
            last_transition_time: None,
            reason: self.reason.to_owned(),
            message: self.message.clone(),
        };
        condition.put(conditions, moment.now);
        is_news
    }
}

/// Returns the condition of type `kind`; `None` if absent.
pub fn find<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    conditions.iter().find(|it| it.kind == kind)
}
