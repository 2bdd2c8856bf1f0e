//! Conditions in the status of an object (apimachinery `meta/v1.Condition`).

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Observation about one aspect of an object. The type is the key in a list of conditions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Condition {
    /// Type of the condition, such as `Ready`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Status of the condition: `True`, `False` or `Unknown`.
    pub status: String,
    /// Generation of the object for which the status was computed; 0 if unknown.
    #[serde(skip_serializing_if = "is_zero")]
    pub observed_generation: i64,
    /// Time of the last change of `status`. Required when the condition is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Timestamp>,
    /// Machine-readable reason of the status, in upper camel case; never empty.
    pub reason: String,
    /// Description of the status for a person; may be empty.
    pub message: String,
}

fn is_zero(number: &i64) -> bool {
    *number == 0
}

impl Condition {
    /// Puts the condition into the list and replaces the condition of the same type. The time of
    /// the last change becomes `now`, without fractions of a second, if the status differs.
    pub fn put(mut self, conditions: &mut Vec<Condition>, now: Timestamp) {
        let old = conditions.iter_mut().find(|it| it.kind == self.kind);
        let unchanged = old.as_ref().filter(|old| old.status == self.status);
        let since = unchanged.and_then(|old| old.last_transition_time);
        // Go writes metav1.Time in whole seconds.
        self.last_transition_time = since.or_else(|| Timestamp::from_second(now.as_second()).ok());
        match old {
            Some(old) => *old = self,
            None => conditions.push(self),
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;

    use super::Condition;

    #[test]
    fn the_time_changes_only_with_the_status() {
        let at = |second: i64| Timestamp::new(second, 500).unwrap();
        let ready = |status: &str, reason: &str| Condition {
            kind: "Ready".into(),
            status: status.into(),
            reason: reason.into(),
            ..Condition::default()
        };
        let mut all = vec![Condition { kind: "Paused".into(), ..Condition::default() }];
        ready("False", "Waiting").put(&mut all, at(1));
        ready("False", "NoHardware").put(&mut all, at(2));
        let expected = json!({ "type": "Ready", "status": "False", "reason": "NoHardware",
            "message": "", "lastTransitionTime": "1970-01-01T00:00:01Z" });
        assert_eq!(serde_json::to_value(&all[1]).unwrap(), expected);
        ready("True", "Provisioned").put(&mut all, at(3));
        assert_eq!(all.len(), 2);
        assert_eq!(all[1].last_transition_time, Some(Timestamp::from_second(3).unwrap()));
    }
}
