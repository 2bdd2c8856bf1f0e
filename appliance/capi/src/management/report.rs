//! Status of a ManagementCluster: state of the connection, cause, and correction. Pure functions.

use api::management_cluster::{
    ACTIVE, CLOCK_SKEW, CONNECTED, ManagementClusterStatus, VERSION_SKEW,
};
use api::meta::{Condition, Resource};
use jiff::Timestamp;
use objects::ObjectError;
use stdx::{Hint as _, chain};

use super::CLUSTERS_MAX;
use super::admission::Refusal;
use super::clock_skew;
use super::discovery::{Discovery, DiscoveryError};
use super::heartbeat::Activity;
use super::skew::{self, Skew};
use crate::components::CLUSTER_ID_NAMESPACE;
use crate::remote::{Cause, KubeconfigError, WatchState};

const INSTALL: &str =
    "install the provider in the management cluster: clusterctl init --infrastructure tinbox";
const INSTALL_CORE: &str = "install Cluster API in the management cluster: clusterctl init";
const UPGRADE: &str = "bring both to one release: update the box, and run clusterctl upgrade apply";
const NO_LEASE: &str = "run clusterctl upgrade apply, or create the namespace tinbox-pairing";
const TAKE_OVER: &str = "if the other device is off: tinbox capi take-over";
const STILL_ALIVE: &str = "it takes over as soon as the other device is silent for a minute; \
                           switch the other device off";

/// State of a connection.
#[derive(Debug, Clone, PartialEq)]
pub struct Observation {
    /// URL of the API server, if the kubeconfig is valid.
    pub server: Option<String>,
    /// Versions of the management cluster, if they were read.
    pub discovery: Option<Discovery>,
    /// End of the token, by the clock of the management cluster.
    pub expires: Option<Timestamp>,
    /// Error of the last attempt to renew the token.
    pub renewal_error: Option<String>,
    /// Time of the last successful request.
    pub contact: Option<Timestamp>,
    /// Time by the clock of the management cluster, after its first response.
    pub server_time: Option<Timestamp>,
    /// State of this device among those of the box; `None` without a connection.
    pub activity: Option<Activity>,
    /// Progress of the connection.
    pub phase: Phase,
}

/// Progress of a connection.
#[derive(Debug, Clone, PartialEq)]
pub enum Phase {
    /// `spec.suspend` is true.
    Suspended,
    /// The box has [`CLUSTERS_MAX`] other connections.
    TooMany,
    /// The Secret or its key does not exist.
    NoKubeconfig {
        /// Name of the Secret.
        secret: String,
    },
    /// The kubeconfig cannot be used.
    BadKubeconfig(KubeconfigError),
    /// The kinds cannot be watched.
    Blocked(DiscoveryError),
    /// The kubeconfig leads to a cluster that this ManagementCluster must not serve.
    Refused(Refusal),
    /// Each kind is watched.
    Watching(Vec<(Resource, WatchState)>),
}

impl Observation {
    /// Returns the state of a connection without a usable kubeconfig.
    pub fn closed(phase: Phase) -> Self {
        let (server, discovery, expires) = (None, None, None);
        let (renewal_error, contact, server_time, activity) = (None, None, None, None);
        Self { server, discovery, expires, renewal_error, contact, server_time, activity, phase }
    }
}

/// Returns the status to write after `old`.
pub fn status(
    old: &ManagementClusterStatus,
    generation: i64,
    seen: &Observation,
    now: Timestamp,
) -> ManagementClusterStatus {
    let mut status = old.clone();
    status.server.clone_from(&seen.server);
    status.credential_expires = seen.expires;
    status.last_contact = seen.contact.map(whole_seconds).or(old.last_contact);
    if let Some(discovery) = &seen.discovery {
        status.version = Some(discovery.version.clone());
        status.contract = Some(discovery.contract);
        if let Some(skew) = &discovery.skew {
            put(&mut status, VERSION_SKEW, generation, skew_verdict(skew), now);
        }
    }
    put(&mut status, CONNECTED, generation, verdict(seen), now);
    if let Some(theirs) = seen.server_time {
        let verdict = match clock_skew::difference(theirs, now) {
            Some(message) => ("True", "ClocksDiffer", message),
            None => ("False", "SameTime", String::new()),
        };
        put(&mut status, CLOCK_SKEW, generation, verdict, now);
    }
    status.active_device = None;
    match &seen.activity {
        Some(activity) => {
            if let Activity::Waits { holder, .. } = activity {
                status.active_device = Some(holder.name.clone());
            }
            put(&mut status, ACTIVE, generation, activity_verdict(activity), now);
        }
        None => status.conditions.retain(|it| it.kind != ACTIVE),
    }
    status
}

fn activity_verdict(activity: &Activity) -> Verdict {
    match activity {
        Activity::Unknown(why) => ("Unknown", "LeaseUnknown", why.clone()),
        Activity::Holds => ("True", "LeaseHeld", "this device serves the cluster".to_owned()),
        Activity::NoLease(why) => {
            let why = format!(
                "this device serves the cluster without a Lease, so a second device with a backup \
                 of this box would serve it too: {why}"
            );
            ("True", "NoLease", advise(&why, NO_LEASE))
        }
        Activity::Waits { holder, is_named } => {
            // Without a time: each change of the text is a write of the status.
            let state = if holder.is_expired { "was silent for a minute" } else { "is alive" };
            let why = format!(
                "the device {} of this box serves the cluster and {state}; this device only \
                 watches",
                holder.name
            );
            let hint = match (is_named, holder.is_expired) {
                (false, _) => TAKE_OVER,
                (true, false) => STILL_ALIVE,
                (true, true) => "",
            };
            ("False", "HeldByOtherDevice", advise(&why, hint))
        }
    }
}

/// Kubernetes writes times in whole seconds.
fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

/// Status, reason and message of a condition.
type Verdict = (&'static str, &'static str, String);

fn put(
    status: &mut ManagementClusterStatus,
    kind: &str,
    generation: i64,
    (state, reason, message): Verdict,
    now: Timestamp,
) {
    let condition = Condition {
        kind: kind.to_owned(),
        status: state.to_owned(),
        observed_generation: generation,
        last_transition_time: None,
        reason: reason.to_owned(),
        message,
    };
    condition.put(&mut status.conditions, now);
}

fn verdict(seen: &Observation) -> Verdict {
    let no = |reason, message| ("False", reason, message);
    match &seen.phase {
        Phase::Suspended => no("Suspended", "spec.suspend is true".to_owned()),
        Phase::TooMany => no(
            "TooManyClusters",
            format!("a box serves at most {CLUSTERS_MAX} management clusters"),
        ),
        Phase::NoKubeconfig { secret } => {
            let why = format!("Secret {secret} with a kubeconfig under the key value not found");
            no("KubeconfigMissing", advise(&why, "pair again: tinbox capi pair"))
        }
        Phase::BadKubeconfig(error) => {
            let hint = error.hint().unwrap_or_default();
            no("KubeconfigInvalid", advise(&error.to_string(), hint))
        }
        Phase::Blocked(error) => blocked(error),
        Phase::Refused(Refusal::OtherCluster { own, found }) => no(
            "ClusterChanged",
            format!(
                "the kubeconfig leads to the cluster {found}, but the box was paired with the \
                 cluster {own}; the box changes no machine: correct the kubeconfig, or, to serve \
                 the other cluster, unpair and pair again: tinbox capi unpair, tinbox capi pair"
            ),
        ),
        Phase::Refused(Refusal::Duplicate { first }) => no(
            "AlreadyPaired",
            format!(
                "the ManagementCluster {first} leads to the same cluster; unpair one of the two: \
                 tinbox capi unpair"
            ),
        ),
        Phase::Watching(kinds) => watching(kinds, seen.renewal_error.as_deref()),
    }
}

fn blocked(error: &DiscoveryError) -> Verdict {
    match error {
        DiscoveryError::Api(error) => {
            let cause = Cause::of(error.hint());
            ("False", reason(cause), advise(&text(error), error.hint().unwrap_or_default()))
        }
        DiscoveryError::NoRightToId(error) => {
            let why = format!(
                "missing right: get of the namespace {CLUSTER_ID_NAMESPACE}, whose UID is the ID \
                 of the cluster: {}",
                text(error)
            );
            let hint = "the right returns by itself after clusterctl upgrade apply; else pair \
                        again: tinbox capi pair";
            ("False", "Forbidden", advise(&why, hint))
        }
        DiscoveryError::NoClusterApi => {
            let why = "the management cluster does not serve cluster.x-k8s.io v1beta1 or v1beta2";
            ("False", "ClusterAPIMissing", advise(why, INSTALL_CORE))
        }
        DiscoveryError::NoProvider => {
            let why = "the management cluster does not serve TinkerbellMachine v1beta1";
            ("False", "ProviderMissing", advise(why, INSTALL))
        }
        DiscoveryError::OtherVersions(versions) => {
            let why = format!(
                "the management cluster serves TinkerbellMachine in {}, the box needs v1beta1",
                versions.join(", ")
            );
            ("False", VERSION_SKEW, advise(&why, UPGRADE))
        }
    }
}

fn text(error: &ObjectError) -> String {
    chain(error)
}

fn watching(kinds: &[(Resource, WatchState)], renewal_error: Option<&str>) -> Verdict {
    let broken: Vec<_> = kinds
        .iter()
        .filter(|(_, state)| state.connected_since.is_none())
        .filter_map(|(kind, state)| Some((kind, state.last_error.as_ref()?)))
        .collect();
    let Some((_, error)) = broken.first() else {
        let connected = kinds.iter().all(|(_, state)| state.connected_since.is_some());
        return match (connected, renewal_error) {
            (false, _) => ("Unknown", "Connecting", "the objects are listed".to_owned()),
            (true, None) => ("True", "Connected", "all kinds are watched".to_owned()),
            (true, Some(error)) => {
                let why = format!("the token cannot be renewed: {error}");
                ("True", "RenewalFailing", advise(&why, "pair again: tinbox capi pair"))
            }
        };
    };
    let hint = error.hint.as_deref();
    let cause = Cause::of(hint);
    let names: Vec<String> =
        broken.iter().map(|(kind, _)| format!("{}.{}", kind.plural, kind.group)).collect();
    let why = match cause {
        Cause::Rights => {
            format!("missing rights: get, list, watch of {}: {}", names.join(", "), error.text)
        }
        _ => error.text.clone(),
    };
    ("False", reason(cause), advise(&why, hint.unwrap_or_default()))
}

fn reason(cause: Cause) -> &'static str {
    match cause {
        Cause::Credential => "Unauthorized",
        Cause::Rights => "Forbidden",
        Cause::Definition => "ProviderMissing",
        Cause::Server => "NotKubernetes",
        Cause::Certificate => "CertificateMismatch",
        Cause::Validity => "CertificateNotValid",
        Cause::Other => "Unreachable",
    }
}

fn skew_verdict(skew: &Skew) -> Verdict {
    let missing = format!("lacks {}", skew::shown(&skew.missing));
    let unknown = format!("has {}, which the box does not know", skew::shown(&skew.unknown));
    let there = |what: &str| format!("the provider in the management cluster {what}");
    match (skew.missing.is_empty(), skew.unknown.is_empty()) {
        (true, true) => {
            ("False", "SameFields", "the box and its provider have the same fields".to_owned())
        }
        (false, true) => {
            ("True", "OlderProvider", advise(&there(&missing), "run clusterctl upgrade apply"))
        }
        (true, false) => ("True", "NewerProvider", advise(&there(&unknown), "update the box")),
        (false, false) => {
            ("True", "OtherProvider", advise(&there(&format!("{missing}, and {unknown}")), UPGRADE))
        }
    }
}

/// Joins a cause and the advice for a person.
fn advise(why: &str, hint: &str) -> String {
    if hint.is_empty() { why.to_owned() } else { format!("{why}; {hint}") }
}

#[cfg(test)]
mod tests;
