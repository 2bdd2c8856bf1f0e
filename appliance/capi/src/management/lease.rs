//! Rules about the Lease that only one of several devices with the objects of one box may hold.
//! Pure functions.
//!
//! A device is a computer with the firmware. A backup that was restored on a second device makes
//! both devices the same box. The holder of the Lease serves the management cluster, the others
//! only watch. Durations are measured on the device, as in the leader election of Kubernetes
//! (client-go `tools/leaderelection`): the clocks of devices may differ.

use std::time::Duration;

use api::meta::{ObjectKey, Resource};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::components::PAIRING_NAMESPACE;

/// Kind Lease, as in Kubernetes' leader election.
pub const LEASE: Resource =
    Resource { group: "coordination.k8s.io", version: "v1", kind: "Lease", plural: "leases" };
/// Time without a renewal after which another device may take the Lease.
pub const DURATION: Duration = Duration::from_secs(60);
/// Maximum length of the name of another device, in characters: that of a Kubernetes name.
const NAME_CHARS_MAX: usize = 253;
/// Label of the Leases of boxes.
const LABEL: &str = "app.kubernetes.io/managed-by";
/// Value of [`LABEL`], and beginning of the names of the Leases.
const MANAGER: &str = "tinbox";

/// Device among the devices with the objects of one box.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// Unique ID of the box, which is in its backups.
    pub box_id: String,
    /// Unique name of the device, which is in no backup.
    pub holder: String,
}

/// State of a Lease for one device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    /// No device holds the Lease.
    Free,
    /// This device holds the Lease.
    Own,
    /// Another device holds the Lease.
    Other(Holder),
}

/// Device that holds the Lease of this box.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Name of the device.
    pub name: String,
    /// True if the device has not renewed the Lease for its duration.
    pub is_expired: bool,
}

/// Returns namespace and name of the Lease of a box: in the only namespace that the box serves, or
/// in that of the identities of boxes.
pub fn key(box_id: &str, namespace: Option<&str>) -> ObjectKey {
    let namespace = namespace.unwrap_or(PAIRING_NAMESPACE);
    ObjectKey::new(namespace, format!("{MANAGER}-{box_id}"))
}

/// Returns the state of a Lease that has not changed for `unchanged`.
pub fn claim(lease: &Value, holder: &str, unchanged: Duration) -> Claim {
    let name = plain(lease["spec"]["holderIdentity"].as_str().unwrap_or_default());
    if name.is_empty() {
        return Claim::Free;
    }
    if name == holder {
        return Claim::Own;
    }
    let seconds = lease["spec"]["leaseDurationSeconds"].as_u64().filter(|it| *it > 0);
    let duration = seconds.map_or(DURATION, Duration::from_secs);
    Claim::Other(Holder { name, is_expired: unchanged >= duration })
}

impl Claim {
    /// Returns true if the device may write itself as the holder. A Lease of another device must
    /// be expired, and a person must have named this device in `spec.takeOverFrom`.
    pub fn may_hold(&self, take_over_from: Option<&str>) -> bool {
        match self {
            Self::Free | Self::Own => true,
            Self::Other(holder) => holder.is_expired && take_over_from == Some(&holder.name),
        }
    }
}

/// Returns a new Lease that `holder` holds.
pub fn created(key: &ObjectKey, holder: &str, now: Timestamp) -> Value {
    let lease = json!({
        "apiVersion": LEASE.api_version(),
        "kind": LEASE.kind,
        "metadata": {
            "name": key.name,
            "namespace": key.namespace,
            "labels": { LABEL: MANAGER },
        },
        "spec": {},
    });
    held(lease, holder, now)
}

/// Returns the Lease with `holder` as its holder from `now` on.
pub fn held(mut lease: Value, holder: &str, now: Timestamp) -> Value {
    let spec = &mut lease["spec"];
    let time = micro_time(now);
    if spec["holderIdentity"] != holder {
        let transitions = spec["leaseTransitions"].as_u64();
        spec["leaseTransitions"] = transitions.map_or(0, |count| count.saturating_add(1)).into();
        spec["acquireTime"] = time.as_str().into();
    }
    spec["holderIdentity"] = holder.into();
    spec["leaseDurationSeconds"] = DURATION.as_secs().into();
    spec["renewTime"] = time.into();
    lease
}

/// Returns the Lease without a holder.
pub fn released(mut lease: Value) -> Value {
    lease["spec"]["holderIdentity"] = "".into();
    lease
}

/// Returns the name of another device without control characters, of limited length.
fn plain(text: &str) -> String {
    text.chars().filter(|char| !char.is_control()).take(NAME_CHARS_MAX).collect()
}

/// Returns a time as Kubernetes' `MicroTime`, which has exactly six digits of the second.
fn micro_time(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jiff::Timestamp;
    use serde_json::json;

    use super::{Claim, DURATION, Holder, claim, created, held, key, released};

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_lease_counts_its_holders() {
        let lease = created(&key("b1", None), "one", at(0));
        assert_eq!(lease["metadata"]["namespace"], "tinbox-pairing");
        assert_eq!(
            lease["spec"],
            json!({
                "holderIdentity": "one",
                "leaseDurationSeconds": 60,
                "leaseTransitions": 0,
                "acquireTime": "1970-01-01T00:00:00.000000Z",
                "renewTime": "1970-01-01T00:00:00.000000Z",
            })
        );
        let renewed = held(lease, "one", at(1));
        assert_eq!(renewed["spec"]["acquireTime"], "1970-01-01T00:00:00.000000Z");
        assert_eq!(renewed["spec"]["renewTime"], "1970-01-01T00:00:01.000000Z");
        let taken = held(renewed, "two", at(2));
        assert_eq!(taken["spec"]["acquireTime"], "1970-01-01T00:00:02.000000Z");
        assert_eq!(taken["spec"]["leaseTransitions"], 1);
        assert_eq!(claim(&released(taken), "one", Duration::ZERO), Claim::Free);
    }

    #[test]
    fn a_device_waits_for_the_end_of_another_and_for_a_person() {
        let lease = created(&key("b1", Some("rack-1")), "one", at(0));
        assert_eq!(lease["metadata"]["namespace"], "rack-1");
        assert_eq!(claim(&lease, "one", Duration::ZERO), Claim::Own);
        let short = DURATION - Duration::from_secs(1);
        for (unchanged, named, may_hold) in [
            (DURATION, Some("one"), true),
            (short, Some("one"), false),
            (DURATION, None, false),
            (DURATION, Some("three"), false),
            // An order to replace an earlier holder, which this device has replaced.
            (DURATION, Some("two"), false),
        ] {
            let found = claim(&lease, "two", unchanged);
            assert_eq!(found.may_hold(named), may_hold, "{unchanged:?} {named:?}");
        }
        assert!(Claim::Free.may_hold(None) && Claim::Own.may_hold(None));
    }

    #[test]
    fn a_lease_of_any_content_is_read() {
        let read = |spec| claim(&json!({ "spec": spec }), "one", Duration::from_secs(30));
        assert_eq!(read(json!(null)), Claim::Free);
        assert_eq!(read(json!({ "holderIdentity": 1 })), Claim::Free);
        let other = |seconds: serde_json::Value| {
            read(json!({ "holderIdentity": "two", "leaseDurationSeconds": seconds }))
        };
        let expected = |is_expired| Claim::Other(Holder { name: "two".to_owned(), is_expired });
        assert_eq!(other(json!(30)), expected(true));
        for seconds in [json!(31), json!(0), json!(-1), json!("1"), json!(null)] {
            assert_eq!(other(seconds.clone()), expected(false), "{seconds}");
        }
    }
}
