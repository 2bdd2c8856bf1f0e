//! Choice of the Hardware for a TinkerbellMachine, as a pure function of the request and of all
//! Hardware.
//!
//! A Hardware that the machine owns always wins. A request with a name (`hardwareName` or
//! `providerID`) gets the Hardware with this name or nothing. Other requests get the free Hardware
//! with the highest sum of preferred weights, then the Hardware that was released the longest time
//! ago, then the first by namespace and name.
//!
//! This crate must never read or write objects. Enter at [`choose`].

mod machine_model;
mod named;
mod refusal;
mod summary;

use std::cmp::Reverse;
use std::collections::BTreeSet;

use api::infrastructure::{
    Affinity, CLUSTER_UID, FAILURE_DOMAIN, HardwareSelector, MANAGEMENT_CLUSTER_NAME, OWNER_NAME,
    OWNER_NAMESPACE, PROVISIONED, RELEASED_AT, TinkerbellMachine,
};
use api::meta::{ObjectKey, SelectorError};
use api::tinkerbell::Hardware;
use jiff::Timestamp;

use machine_model::MachineModel;
pub use named::NameError;
use named::named;
pub use refusal::Refusal;
pub use summary::{SUMMARY_CHARS_MAX, SUMMARY_HOSTS_MAX};

/// Hardware that a TinkerbellMachine needs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HardwareRequest {
    /// Key of the TinkerbellMachine.
    pub machine: ObjectKey,
    /// Unique ID of the management cluster that has the TinkerbellMachine; `None` for the box.
    pub cluster_uid: Option<String>,
    /// Unique IDs of the management clusters that have a machine of this name or cannot be read;
    /// that of the box is empty.
    pub clusters: BTreeSet<String>,
    /// Name of the only acceptable Hardware; empty for any.
    pub hardware_name: String,
    /// Provider ID of the machine to adopt without a new installation; empty for any Hardware.
    pub provider_id: String,
    /// Maker, model and labels that the Hardware must have.
    pub selector: HardwareSelector,
    /// Label rules that require or prefer Hardware.
    pub affinity: Affinity,
    /// Failure domain of the Hardware; empty for any.
    pub failure_domain: String,
    /// Name of the box: the failure domain of Hardware without the label [`FAILURE_DOMAIN`].
    pub box_name: String,
    /// True for a deleted machine, which only releases its Hardware.
    pub is_deleted: bool,
    /// True for a machine of CAPT, the stock provider, that no box has adopted.
    pub is_of_stock: bool,
}

/// Error in a request, which the owner of the TinkerbellMachine must correct.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// A required term has an invalid selector.
    #[error("spec.hardwareAffinity.required[{at}]: {error}")]
    Required {
        /// Position of the term, from 0.
        at: usize,
        /// Error in the selector.
        error: SelectorError,
    },
    /// A preferred term has an invalid selector.
    #[error("spec.hardwareAffinity.preferred[{at}]: {error}")]
    Preferred {
        /// Position of the term, from 0.
        at: usize,
        /// Error in the selector.
        error: SelectorError,
    },
    /// The Hardware with the requested name cannot be determined.
    #[error(transparent)]
    Name(#[from] NameError),
}

/// Result of the check of one Hardware.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// Key of the Hardware.
    pub host: ObjectKey,
    /// Sum of the preferred weights, or the reason why the Hardware cannot be used.
    pub result: Result<i64, Refusal>,
}

/// Chosen Hardware, and the reasons for the choice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// Key of the chosen Hardware; `None` if no Hardware can be used.
    pub taken: Option<ObjectKey>,
    /// Result for each candidate, in the order of the keys. Empty after an invalid request. A
    /// Hardware without the requested name is not a candidate.
    pub verdicts: Vec<Verdict>,
    /// Message for a condition: one or two sentences of at most [`SUMMARY_CHARS_MAX`] characters.
    pub summary: String,
    /// Error of the request; no Hardware is taken.
    pub error: Option<RequestError>,
}

impl HardwareRequest {
    /// Creates the request of a TinkerbellMachine. The failure domain of its owner, the Machine of
    /// Cluster API, takes precedence over that in the spec.
    pub fn of(machine: &TinkerbellMachine, owner_domain: Option<&str>, box_name: &str) -> Self {
        let spec = &machine.spec;
        let owner_domain = owner_domain.filter(|domain| !domain.is_empty());
        Self {
            machine: machine.key(),
            cluster_uid: None,
            clusters: BTreeSet::new(),
            hardware_name: spec.hardware_name.clone(),
            provider_id: spec.provider_id.clone(),
            selector: spec.hardware_selector.clone(),
            affinity: spec.hardware_affinity.clone(),
            failure_domain: owner_domain.unwrap_or(&spec.failure_domain).to_owned(),
            box_name: box_name.to_owned(),
            is_deleted: machine.metadata.deletion_timestamp.is_some(),
            is_of_stock: false,
        }
    }

    /// Returns true if the request names its Hardware. The Hardware may run the machine already, so
    /// selectors and failure domain do not apply.
    pub fn has_name(&self) -> bool {
        !self.hardware_name.is_empty() || !self.provider_id.is_empty()
    }

    /// Returns true if the machine owns `host`.
    pub fn owns(&self, host: &Hardware) -> bool {
        owner(host).as_ref() == Some(&self.machine)
            && cluster_uid(host) == self.cluster_uid.as_deref()
    }

    /// Returns true if the machine was moved from another management cluster, and `host` is still
    /// labeled with that cluster, or if CAPT labeled `host` for the machine. Only a provisioned
    /// Hardware follows its machine, and only if the machine names this Hardware and the other
    /// cluster no longer has the machine, because `clusterctl move` deletes its copy there. Two
    /// clusters may have machines of equal names. A deleted machine of CAPT also releases a
    /// Hardware that was not completely provisioned.
    pub fn follows(&self, host: &Hardware) -> bool {
        self.may_follow(host) && !self.clusters.contains(cluster_uid(host).unwrap_or_default())
    }

    /// Returns true if `host` follows the machine as soon as the other cluster no longer has it.
    pub fn may_follow(&self, host: &Hardware) -> bool {
        let is_named = self.hardware_name == host.metadata.name
            || named::is_id_of(&self.provider_id, &host.key());
        !self.provider_id.is_empty()
            && is_named
            && !self.owns(host)
            && owner(host).as_ref() == Some(&self.machine)
            && (host.metadata.annotations.contains_key(PROVISIONED)
                || self.is_deleted && self.is_of_stock && cluster_uid(host).is_none())
    }

    /// Returns true if CAPT labeled `host` for the machine. The box's own API may have a machine of
    /// the same name, whose labels are the same.
    pub fn is_labeled_by_stock(&self, host: &Hardware) -> bool {
        self.cluster_uid.is_some()
            && cluster_uid(host).is_none()
            && owner(host).as_ref() == Some(&self.machine)
            && !self.clusters.contains("")
    }

    /// Returns true for a provider ID in the old form `tinkerbell://NAME` with the name of the
    /// machine itself, as in the founding guide. Such an ID may identify the node only.
    pub fn has_own_id(&self) -> bool {
        self.provider_id.strip_prefix(named::SCHEME) == Some(&*self.machine.name)
    }

    /// Removes a provider ID with the name of the machine itself, unless a Hardware has this name.
    fn without_own_name(&self, hosts: &[&Hardware]) -> Self {
        let has_host = hosts.iter().any(|host| host.metadata.name == self.machine.name);
        let is_removed = self.has_own_id() && !has_host;
        let provider_id = if is_removed { String::new() } else { self.provider_id.clone() };
        Self { provider_id, ..self.clone() }
    }

    fn check(&self) -> Result<(), RequestError> {
        for (at, term) in self.affinity.required.iter().enumerate() {
            let checked = term.label_selector.check();
            checked.map_err(|error| RequestError::Required { at, error })?;
        }
        for (at, term) in self.affinity.preferred.iter().enumerate() {
            let checked = term.hardware_affinity_term.label_selector.check();
            checked.map_err(|error| RequestError::Preferred { at, error })?;
        }
        Ok(())
    }
}

impl Verdict {
    /// Returns the machine-readable reason: `Usable`, or the reason of the refusal.
    pub fn reason(&self) -> &'static str {
        self.result.as_ref().map_or_else(Refusal::word, |_| "Usable")
    }

    /// Returns a sentence for a person without its final period.
    pub fn sentence(&self) -> String {
        match &self.result {
            Ok(_) => format!("{} can be used", self.host),
            Err(refusal) => format!("{} {refusal}", self.host),
        }
    }
}

/// Chooses the Hardware for a TinkerbellMachine. The order of `hosts` does not matter. The caller
/// must write the owner labels on condition that the Hardware is unchanged, because another
/// machine may choose the same Hardware at the same time.
pub fn choose(wanted: &HardwareRequest, hosts: &[Hardware]) -> Choice {
    let mut hosts: Vec<&Hardware> = hosts.iter().collect();
    hosts.sort_by_cached_key(|host| host.key());
    if let Some(owned) = owned(wanted, &hosts) {
        let host = owned.key();
        let summary = summary::owned(&host);
        let verdicts = vec![Verdict { host: host.clone(), result: Ok(score(wanted, owned)) }];
        return Choice { taken: Some(host), verdicts, summary, error: None };
    }
    let wanted = &wanted.without_own_name(&hosts);
    let candidates = match candidates(wanted, &hosts) {
        Ok(candidates) => candidates,
        Err(error) => {
            let summary = summary::invalid(&error);
            return Choice { taken: None, verdicts: Vec::new(), summary, error: Some(error) };
        }
    };
    let mut verdicts = Vec::new();
    let mut usable = Vec::new();
    for host in candidates {
        let result = check(wanted, host).map(|()| score(wanted, host));
        if let Ok(score) = result {
            usable.push((Reverse(score), released_at(host), host));
        }
        verdicts.push(Verdict { host: host.key(), result });
    }
    // The sort is stable, so equal Hardware stays in the order of the keys.
    usable.sort_by_key(|(score, released, _)| (*score, *released));
    let taken = usable.first().map(|(_, _, host)| host.key());
    let summary = match &taken {
        Some(host) => summary::taken(host, &verdicts),
        None => summary::refused(&verdicts),
    };
    Choice { taken, verdicts, summary, error: None }
}

/// Returns the failure domain of a Hardware: its label, else the name of the box.
pub fn failure_domain<'a>(host: &'a Hardware, box_name: &'a str) -> &'a str {
    let label = host.metadata.labels.get(FAILURE_DOMAIN).filter(|label| !label.is_empty());
    label.map_or(box_name, String::as_str)
}

/// Returns the Hardware that the machine owns. Of several, the one with the requested name wins,
/// then the first by key.
fn owned<'a>(wanted: &HardwareRequest, hosts: &[&'a Hardware]) -> Option<&'a Hardware> {
    let is_own = |host: &&&Hardware| wanted.owns(host) || wanted.follows(host);
    let own: Vec<&Hardware> = hosts.iter().filter(is_own).copied().collect();
    let by_name = named(wanted, &own).ok();
    by_name.filter(|_| wanted.has_name()).or_else(|| own.first().copied())
}

/// Returns the Hardware to check: all, or the Hardware with the requested name.
fn candidates<'a>(
    wanted: &HardwareRequest,
    hosts: &[&'a Hardware],
) -> Result<Vec<&'a Hardware>, RequestError> {
    if wanted.has_name() {
        return Ok(vec![named(wanted, hosts)?]);
    }
    wanted.check()?;
    // CAPT labels the Hardware before it writes the name into the machine. If CAPT was stopped
    // between, an installation may run there, and another one must not begin.
    let labeled = hosts.iter().find(|host| wanted.is_labeled_by_stock(host));
    Ok(labeled.map_or_else(|| hosts.to_vec(), |host| vec![*host]))
}

/// Returns the key of the TinkerbellMachine that owns a Hardware; `None` if the Hardware is free.
pub fn owner(host: &Hardware) -> Option<ObjectKey> {
    let labels = &host.metadata.labels;
    let name = labels.get(OWNER_NAME)?;
    Some(ObjectKey::new(labels.get(OWNER_NAMESPACE).map_or("", String::as_str), name))
}

/// Returns the unique ID of the management cluster that owns a Hardware; `None` for the box.
pub fn cluster_uid(host: &Hardware) -> Option<&str> {
    host.metadata.labels.get(CLUSTER_UID).map(String::as_str)
}

/// Checks if a Hardware can be used for the request. Parses the inventory only if all other checks
/// succeed, because it has up to 64 KiB.
fn check(wanted: &HardwareRequest, host: &Hardware) -> Result<(), Refusal> {
    if host.metadata.deletion_timestamp.is_some() {
        return Err(Refusal::Deleted);
    }
    if let Some(owner) = owner(host).filter(|_| !wanted.follows(host)) {
        let cluster = host.metadata.annotations.get(MANAGEMENT_CLUSTER_NAME).cloned();
        return Err(Refusal::InUse { machine: owner, cluster });
    }
    // CAPT writes the labels before the provider ID. Another box may have a Hardware of the same
    // name, which the machine runs on.
    if wanted.is_of_stock && !wanted.provider_id.is_empty() && owner(host).is_none() {
        return Err(Refusal::Unlabeled);
    }
    // A provisioned machine without an owner may have lost its labels. Only a request that adopts
    // the machine, and so never erases its disks, may take it.
    if wanted.provider_id.is_empty() && host.metadata.annotations.contains_key(PROVISIONED) {
        return Err(Refusal::Provisioned);
    }
    complete(host)?;
    if wanted.has_name() {
        return Ok(());
    }
    let domain = failure_domain(host, &wanted.box_name);
    if !wanted.failure_domain.is_empty() && wanted.failure_domain != domain {
        return Err(Refusal::FailureDomain(domain.to_owned()));
    }
    let labels = &host.metadata.labels;
    for (key, value) in wanted.selector.labels() {
        if labels.get(&key) != Some(&value) {
            return Err(Refusal::Label(key));
        }
    }
    let required = &wanted.affinity.required;
    if !required.is_empty() && !required.iter().any(|term| term.label_selector.matches(labels)) {
        return Err(Refusal::Affinity);
    }
    let model = MachineModel::of(host, &wanted.selector);
    model.check(&wanted.selector)
}

/// Checks the fields that the installation of a machine needs.
fn complete(host: &Hardware) -> Result<(), Refusal> {
    let interface = host.spec.interfaces.first().ok_or(Refusal::NoInterface)?;
    interface.dhcp.as_ref().and_then(|dhcp| dhcp.mac).ok_or(Refusal::NoMac)?;
    // A disk is a path or a hint such as serialNumber=S4EV: actions accept both as DEST_DISK.
    let has_disk = host.spec.disks.first().is_some_and(|disk| !disk.device.is_empty());
    if has_disk { Ok(()) } else { Err(Refusal::NoDisk) }
}

/// Returns the sum of the weights of all preferred terms that match.
fn score(wanted: &HardwareRequest, host: &Hardware) -> i64 {
    let terms = wanted.affinity.preferred.iter();
    let matching = terms
        .filter(|term| term.hardware_affinity_term.label_selector.matches(&host.metadata.labels));
    matching.map(|term| i64::from(term.weight)).sum()
}

/// Returns the time of the last release; `None` sorts first: the Hardware was never released, or
/// the annotation is not a valid time.
fn released_at(host: &Hardware) -> Option<Timestamp> {
    host.metadata.annotations.get(RELEASED_AT)?.parse().ok()
}

#[cfg(test)]
mod tests;
