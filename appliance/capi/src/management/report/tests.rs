use std::collections::BTreeSet;
use std::time::Duration;

use api::infrastructure::cluster_api::MACHINE;
use api::infrastructure::{Contract, TINKERBELL_MACHINE};
use api::management_cluster::{ManagementClusterStatus, VERSION_SKEW};
use api::meta::{Condition, ObjectKey, Resource};
use jiff::Timestamp;
use objects::ObjectError;

use super::{Observation, Phase, status};
use crate::management::admission::Refusal;
use crate::management::discovery::{Discovery, DiscoveryError};
use crate::management::heartbeat::Activity;
use crate::management::lease::Holder;
use crate::management::skew::Skew;
use crate::remote::{Cause, Kubeconfig, WatchError, WatchState};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn connected() -> WatchState {
    WatchState { connected_since: Some(at(1)), ..WatchState::default() }
}

fn failing(error: &ObjectError) -> WatchState {
    use stdx::Hint as _;
    let (text, hint) = (stdx::chain(error), error.hint().map(str::to_owned));
    WatchState { last_error: Some(WatchError { at: at(1), text, hint }), ..WatchState::default() }
}

fn error(cause: Cause) -> ObjectError {
    let (what, why) = ("TinkerbellMachine objects".to_owned(), "the cause".to_owned());
    let all = crate::remote::hints();
    let hint = all.into_iter().find(|hint| Cause::of(Some(hint)) == cause);
    ObjectError::Unavailable { what, why, hint }
}

fn condition(phase: Phase) -> Condition {
    let status = status(&ManagementClusterStatus::default(), 3, &Observation::closed(phase), at(9));
    let condition = status.connected().unwrap().clone();
    assert_eq!(condition.observed_generation, 3);
    assert_eq!(condition.last_transition_time, Some(at(9)));
    condition
}

#[test]
fn each_state_has_its_reason_and_says_what_to_do() {
    let watching = |machine: WatchState| {
        Phase::Watching(vec![(MACHINE, connected()), (TINKERBELL_MACHINE, machine)])
    };
    let invalid = Kubeconfig::parse("clusters: []").unwrap_err();
    for (phase, state, reason, message) in [
        (Phase::Suspended, "False", "Suspended", "spec.suspend"),
        (Phase::TooMany, "False", "TooManyClusters", "at most"),
        (
            Phase::NoKubeconfig { secret: "a-kubeconfig".to_owned() },
            "False",
            "KubeconfigMissing",
            "Secret a-kubeconfig with a kubeconfig under the key value not found; pair again",
        ),
        (Phase::BadKubeconfig(invalid), "False", "KubeconfigInvalid", "; print the kubeconfig"),
        (
            Phase::Blocked(DiscoveryError::NoProvider),
            "False",
            "ProviderMissing",
            "clusterctl init --infrastructure tinbox",
        ),
        (
            Phase::Blocked(DiscoveryError::NoClusterApi),
            "False",
            "ClusterAPIMissing",
            "; install Cluster API",
        ),
        (
            Phase::Blocked(DiscoveryError::OtherVersions(vec!["v1beta9".to_owned()])),
            "False",
            VERSION_SKEW,
            "in v1beta9, the box needs v1beta1; bring both",
        ),
        (
            Phase::Blocked(DiscoveryError::Api(error(Cause::Credential))),
            "False",
            "Unauthorized",
            "the cause; the credential",
        ),
        (watching(connected()), "True", "Connected", "all kinds are watched"),
        (watching(WatchState::default()), "Unknown", "Connecting", ""),
        (watching(failing(&error(Cause::Credential))), "False", "Unauthorized", "; the credential"),
        (
            watching(failing(&error(Cause::Rights))),
            "False",
            "Forbidden",
            "missing rights: get, list, watch of \
             tinkerbellmachines.infrastructure.cluster.x-k8s.io: cannot reach",
        ),
        (
            watching(failing(&error(Cause::Definition))),
            "False",
            "ProviderMissing",
            "clusterctl init",
        ),
        (watching(failing(&error(Cause::Certificate))), "False", "CertificateMismatch", "; the"),
        (watching(failing(&error(Cause::Validity))), "False", "CertificateNotValid", "by NTP"),
        (watching(failing(&error(Cause::Server))), "False", "NotKubernetes", "; the answer"),
        (watching(failing(&error(Cause::Other))), "False", "Unreachable", "the cause; check"),
    ] {
        let shown = format!("{phase:?}");
        let found = condition(phase);
        assert_eq!((found.status.as_str(), found.reason.as_str()), (state, reason), "{shown}");
        assert!(found.message.contains(message), "{shown}: {}", found.message);
    }
}

#[test]
fn a_cluster_that_is_not_served_names_the_cause() {
    for (phase, reason, message) in [
        (
            Phase::Blocked(DiscoveryError::NoRightToId(error(Cause::Rights))),
            "Forbidden",
            "missing right: get of the namespace kube-system, whose UID is the ID of the cluster: ",
        ),
        (
            Phase::Refused(Refusal::OtherCluster { own: "a-1".to_owned(), found: "b-2".into() }),
            "ClusterChanged",
            "the kubeconfig leads to the cluster b-2, but the box was paired with the cluster a-1; \
             the box changes no machine: correct the kubeconfig, or, to serve the other cluster, \
             unpair and pair again",
        ),
        (
            Phase::Refused(Refusal::Duplicate { first: ObjectKey::new("default", "fleet") }),
            "AlreadyPaired",
            "the ManagementCluster default/fleet leads to the same cluster; unpair one of the two",
        ),
    ] {
        let found = condition(phase);
        assert_eq!((found.status.as_str(), found.reason.as_str()), ("False", reason));
        assert!(found.message.contains(message), "{}", found.message);
    }
}

#[test]
fn a_renewal_that_fails_is_shown_while_the_connection_works() {
    let kinds: Vec<(Resource, WatchState)> = vec![(MACHINE, connected())];
    let mut seen = Observation::closed(Phase::Watching(kinds));
    seen.renewal_error = Some("no right".to_owned());
    let status = status(&ManagementClusterStatus::default(), 1, &seen, at(9));
    let found = status.connected().unwrap();
    assert_eq!((found.status.as_str(), found.reason.as_str()), ("True", "RenewalFailing"));
    assert!(found.message.contains("no right; pair again"), "{}", found.message);
}

#[test]
fn the_device_that_serves_the_cluster_is_named() {
    let waits = |is_named, is_expired| {
        let holder = Holder { name: "cellar_1".to_owned(), is_expired };
        Activity::Waits { holder, is_named }
    };
    for (activity, state, reason, message) in [
        (Activity::Unknown("the cause".to_owned()), "Unknown", "LeaseUnknown", "the cause"),
        (Activity::Holds, "True", "LeaseHeld", "this device serves"),
        (Activity::NoLease("the cause".to_owned()), "True", "NoLease", "the cause; run clusterctl"),
        (
            waits(false, false),
            "False",
            "HeldByOtherDevice",
            "the device cellar_1 of this box serves the cluster and is alive; this device only \
             watches; if the other device is off: tinbox capi take-over",
        ),
        (waits(false, true), "False", "HeldByOtherDevice", "was silent for a minute; this"),
        (waits(true, false), "False", "HeldByOtherDevice", "; switch the other device off"),
        (waits(true, true), "False", "HeldByOtherDevice", "; this device only watches"),
    ] {
        let mut seen = Observation::closed(Phase::Watching(vec![(MACHINE, connected())]));
        seen.activity = Some(activity.clone());
        let before = status(&ManagementClusterStatus::default(), 1, &seen, at(9));
        let found = before.active().unwrap();
        assert_eq!((found.status.as_str(), found.reason.as_str()), (state, reason));
        assert!(found.message.contains(message), "{}", found.message);
        let is_waiting = matches!(activity, Activity::Waits { .. });
        assert_eq!(before.active_device.is_some(), is_waiting);
        // A connection that ended has no device.
        let after = status(&before, 1, &Observation::closed(Phase::Suspended), at(9));
        assert_eq!((after.active(), after.active_device.as_ref()), (None, None));
    }
}

#[test]
fn differences_of_the_provider_are_a_condition_of_their_own() {
    let fields = |names: &[&str]| -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    };
    for (missing, unknown, state, reason, message) in [
        (&[][..], &[][..], "False", "SameFields", "same fields"),
        (&["A.b"], &[], "True", "OlderProvider", "lacks A.b; run clusterctl upgrade apply"),
        (&[], &["A.b"], "True", "NewerProvider", "has A.b, which the box does not know; update"),
        (&["A.b"], &["A.c"], "True", "OtherProvider", "lacks A.b, and has A.c"),
    ] {
        let skew = Skew { missing: fields(missing), unknown: fields(unknown) };
        let mut seen = Observation::closed(Phase::Watching(vec![(MACHINE, connected())]));
        seen.discovery = Some(Discovery {
            cluster_uid: String::new(),
            version: "v1.35.0".to_owned(),
            contract: Contract::V1beta2,
            has_remediation: true,
            skew: Some(skew),
        });
        let status = status(&ManagementClusterStatus::default(), 1, &seen, at(9));
        let found = status.conditions.iter().find(|it| it.kind == VERSION_SKEW).unwrap();
        assert_eq!((found.status.as_str(), found.reason.as_str()), (state, reason));
        assert!(found.message.contains(message), "{}", found.message);
        assert_eq!(status.connected().unwrap().status, "True");
        assert_eq!(status.version.as_deref(), Some("v1.35.0"));
    }
}

#[test]
fn an_outage_keeps_the_last_contact_and_the_versions() {
    let mut seen = Observation::closed(Phase::Watching(vec![(MACHINE, connected())]));
    seen.contact = Some(at(5) + Duration::from_millis(400));
    seen.discovery = Some(Discovery {
        cluster_uid: String::new(),
        version: "v1.35.0".to_owned(),
        contract: Contract::V1beta1,
        has_remediation: true,
        skew: None,
    });
    let before = status(&ManagementClusterStatus::default(), 1, &seen, at(9));
    let lost = Observation::closed(Phase::Blocked(DiscoveryError::Api(error(Cause::Other))));
    let after = status(&before, 1, &lost, at(20));
    assert_eq!(after.last_contact, Some(at(5)));
    assert_eq!((after.version, after.contract), (before.version, before.contract));
    assert_eq!(after.conditions[0].last_transition_time, Some(at(20)));
}
