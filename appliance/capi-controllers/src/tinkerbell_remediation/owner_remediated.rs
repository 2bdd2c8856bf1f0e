//! Condition `OwnerRemediated` of a Machine, by which the owner of the Machine replaces it
//! (cluster-api `util/collections/machine_filters.go`).

use api::infrastructure::Contract;
use jiff::{Timestamp, Unit};
use serde_json::{Value, json};

/// Type of the condition, in every version of Cluster API.
const OWNER_REMEDIATED: &str = "OwnerRemediated";
/// Reason that a MachineHealthCheck without a template sets.
const REASON: &str = "WaitingForRemediation";

/// Sets the condition to `False`. Returns false if every list had it already. A Machine in version
/// v1beta2 has a second list, which older owners read.
pub fn request(machine: &mut Value, contract: Contract, message: &str, now: Timestamp) -> bool {
    let time = now.round(Unit::Second).unwrap_or(now);
    let condition = json!({ "type": OWNER_REMEDIATED, "status": "False", "reason": REASON,
        "message": message, "lastTransitionTime": time });
    let mut older = condition.clone();
    older["severity"] = json!("Warning");
    let status = &mut machine["status"];
    match contract {
        Contract::V1beta1 => put(&mut status["conditions"], older),
        Contract::V1beta2 => {
            let is_new = put(&mut status["conditions"], condition);
            put(&mut status["deprecated"]["v1beta1"]["conditions"], older) || is_new
        }
    }
}

/// Puts the condition into the list. Returns false if the list has the condition with its status.
fn put(list: &mut Value, condition: Value) -> bool {
    if !list.is_array() {
        *list = json!([]);
    }
    let Some(list) = list.as_array_mut() else { return false };
    match list.iter_mut().find(|it| it["type"] == OWNER_REMEDIATED) {
        Some(old) if old["status"] == condition["status"] => return false,
        Some(old) => *old = condition,
        None => list.push(condition),
    }
    true
}

#[cfg(test)]
mod tests {
    use api::infrastructure::Contract;
    use jiff::Timestamp;
    use serde_json::json;

    use super::request;

    #[test]
    fn a_condition_that_was_true_becomes_false_once() {
        let old = json!({ "type": "OwnerRemediated", "status": "True" });
        let mut machine = json!({ "status": { "conditions": [{ "type": "Ready" }, old] } });
        let now = Timestamp::UNIX_EPOCH;
        assert!(request(&mut machine, Contract::V1beta1, "why", now));
        let condition = &machine["status"]["conditions"][1];
        assert_eq!(condition["status"], "False");
        assert_eq!(condition["severity"], "Warning");
        assert_eq!(condition["lastTransitionTime"], "1970-01-01T00:00:00Z");
        assert_eq!(machine["status"]["deprecated"], json!(null));
        assert!(!request(&mut machine, Contract::V1beta1, "again", now));
        assert_eq!(machine["status"]["conditions"][1]["message"], "why");
    }
}
