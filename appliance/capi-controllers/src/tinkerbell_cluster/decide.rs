//! Decision about a TinkerbellCluster.

use std::time::Duration;

use api::infrastructure::{Endpoint, FailureDomains, TinkerbellClusterStatus};
use api::meta::Condition;
use api::network::control_plane_endpoint::ControlPlaneEndpointSpec;
use jiff::Timestamp;

use super::error::ClusterError;
use super::observe::Observed;
use super::{domains, endpoint, images, provided};
use crate::conditions::{
    DecisionTime, ENDPOINT_READY, Finding, IMAGES_REACHABLE, PAUSED, READY, find,
};
use controllers::runtime::Requeue;

/// Interval at which changes of the Hardware, which send no signal, reach the failure domains.
const RECHECK: Duration = Duration::from_secs(5 * 60);
/// Wait for the Cluster of a TinkerbellCluster in a management cluster.
const CLUSTER_WAIT: Duration = Duration::from_secs(15);
/// Wait for another cluster to release the endpoint, as after `clusterctl move`.
const MOVE_WAIT: Duration = Duration::from_secs(15);
/// Wait before the box asks again, by ARP, if another host has the endpoint.
const HOST_WAIT: Duration = Duration::from_secs(30);
/// Wait after a write of the endpoint, before the status is written.
const ENDPOINT_WAIT: Duration = Duration::from_millis(100);

/// Reasons of conditions that are false and need no action of a person.
const WAITING: [&str; 4] = ["WaitingForCluster", "WaitingForEndpoint", "NoMachine", "Probing"];

/// Step that changes the cluster or records an event.
#[derive(Debug, PartialEq)]
pub enum Step {
    /// Writes host and port into `spec.controlPlaneEndpoint`.
    SetEndpoint(Endpoint),
    /// Creates or changes the ControlPlaneEndpoint of the box.
    Provide(Box<ControlPlaneEndpointSpec>),
    /// Deletes the ControlPlaneEndpoint of this name.
    Withdraw(String),
    /// Writes the status of the object that was read.
    Status(Box<TinkerbellClusterStatus>),
    /// Records an event about the object.
    Record {
        /// Reason of the event; its spelling never changes.
        reason: &'static str,
        /// Sentence for a person.
        message: String,
        /// True for an event of type `Warning`.
        warning: bool,
    },
}

/// Steps to carry out, and the time of the next run.
#[derive(Debug, PartialEq)]
pub struct Decision {
    /// Steps in the order in which they run.
    pub steps: Vec<Step>,
    /// Time of the next run.
    pub requeue: Requeue,
}

/// New status, with events about changes.
struct Update<'a> {
    observed: &'a Observed,
    status: TinkerbellClusterStatus,
    events: Vec<Step>,
    moment: DecisionTime,
    /// Changes of the endpoints that the box provides.
    endpoints: Vec<Step>,
}

/// Returns the next steps for a TinkerbellCluster.
pub fn decide(observed: &Observed, now: Timestamp) -> Decision {
    let metadata = &observed.cluster.metadata;
    let idle = Decision { steps: Vec::new(), requeue: Requeue::OnSignal };
    if !observed.served || observed.is_managed_elsewhere() {
        return idle;
    }
    let mut update = Update {
        observed,
        status: observed.cluster.status.clone(),
        events: Vec::new(),
        moment: DecisionTime { generation: metadata.generation, now },
        endpoints: Vec::new(),
    };
    if observed.is_paused() {
        update.pause(true);
        return update.decision(Requeue::OnSignal);
    }
    if metadata.deletion_timestamp.is_some() {
        return idle;
    }
    update.pause(false);
    if observed.owner.is_none() && observed.in_management_cluster {
        update.fail(&ClusterError::ClusterMissing);
        return update.decision(Requeue::After(CLUSTER_WAIT));
    }
    update.set_domains();
    update.set_images();
    match endpoint::check(observed) {
        Ok(endpoint) if endpoint != observed.cluster.spec.control_plane_endpoint => {
            set_endpoint(endpoint)
        }
        Ok(endpoint) => {
            let is_moving = update.provide(&endpoint);
            update.decision(Requeue::After(if is_moving { MOVE_WAIT } else { RECHECK }))
        }
        Err(error) => {
            update.fail(&error);
            let is_of_host = matches!(error, ClusterError::LiveHost { .. });
            update.decision(Requeue::After(if is_of_host { HOST_WAIT } else { RECHECK }))
        }
    }
}

/// Returns the step that writes the endpoint. The next run, with the new generation, writes the
/// status.
fn set_endpoint(endpoint: Endpoint) -> Decision {
    let Endpoint { host, port } = &endpoint;
    let event = Step::Record {
        reason: "EndpointSet",
        message: format!(
            "the endpoint of the control plane is {}, port {port}",
            status::plain(host)
        ),
        warning: false,
    };
    let steps = vec![Step::SetEndpoint(endpoint), event];
    Decision { steps, requeue: Requeue::After(ENDPOINT_WAIT) }
}

impl Update<'_> {
    fn pause(&mut self, is_paused: bool) {
        let (reason, message) = match (is_paused, &self.observed.owner) {
            (false, _) => ("NotPaused", ""),
            (true, Some(owner)) if owner.spec.paused == Some(true) => {
                ("Paused", "the Cluster is paused")
            }
            (true, _) => ("Paused", "the object has the annotation cluster.x-k8s.io/paused"),
        };
        let was_paused =
            find(&self.status.conditions, PAUSED).is_some_and(|it| it.status == "True");
        let message = message.to_owned();
        let finding = Finding { kind: PAUSED, is_true: is_paused, reason, message };
        finding.put(&mut self.status.conditions, self.moment);
        // The first condition of an object that was never paused is not news.
        if was_paused != is_paused {
            let message = match is_paused {
                true => finding.message,
                false => "controllers change the object again".to_owned(),
            };
            self.events.push(Step::Record { reason, message, warning: false });
        }
    }

    fn set_domains(&mut self) {
        let Observed { contract, hosts, box_name, .. } = self.observed;
        let own = domains::own(hosts, box_name);
        let domains = domains::merged(self.status.failure_domains.by_name(), &own, box_name);
        self.status.failure_domains = FailureDomains::new(*contract, domains);
    }

    fn set_images(&mut self) {
        let Observed { images, box_name, .. } = self.observed;
        let old = find(&self.status.conditions, IMAGES_REACHABLE);
        if let Some(finding) = images::finding(images, old, box_name) {
            self.put(finding);
        }
    }

    /// Provides the endpoint if the cluster requests it, and records the result. Returns true while
    /// another cluster has the endpoint.
    fn provide(&mut self, endpoint: &Endpoint) -> bool {
        let provision = provided::decide(self.observed, endpoint);
        self.endpoints = provision.steps;
        match provision.finding {
            Some(finding) if provided::may_put(&finding, &self.status, self.observed) => {
                self.put(finding);
            }
            Some(_) => {}
            None if self.observed.cluster.spec.control_plane_endpoint_provider.is_none() => {
                self.status.conditions.retain(|it| it.kind != ENDPOINT_READY);
            }
            None => {}
        }
        match provision.error {
            None => self.succeed(),
            Some(error) => self.fail(&error),
        }
        provision.is_moving
    }

    fn succeed(&mut self) {
        self.status.set_provisioned();
        let message = "the endpoint of the control plane is set".to_owned();
        self.put(Finding { kind: READY, is_true: true, reason: "Provisioned", message });
    }

    /// Records that the infrastructure is not ready. The fields of both contracts stay, because
    /// they must never change back to false.
    fn fail(&mut self, error: &ClusterError) {
        let mut message = error.message();
        let old = find(&self.status.conditions, READY);
        // The box that has the Network of the endpoint reports more.
        let is_of_network = |it: &Condition| provided::is_of_network(&it.reason);
        if matches!(error, ClusterError::NotServed { .. }) && old.is_some_and(is_of_network) {
            return;
        }
        let old = old.filter(|it| it.reason == error.reason());
        let of_other_box = |old: &str| {
            error.is_conflict() && !ClusterError::is_conflict_of(old, &self.observed.box_name)
        };
        // Two boxes with a conflict each must not overwrite the message of each other forever.
        if let Some(old) = old.filter(|it| of_other_box(&it.message)) {
            message.clone_from(&old.message);
        }
        self.put(Finding { kind: READY, is_true: false, reason: error.reason(), message });
    }

    fn put(&mut self, finding: Finding) {
        if finding.put(&mut self.status.conditions, self.moment) {
            let is_waiting = WAITING.contains(&finding.reason);
            let warning = !finding.is_true && !is_waiting;
            let Finding { reason, message, .. } = finding;
            self.events.push(Step::Record { reason, message, warning });
        }
    }

    /// Returns the steps of the endpoints, the step that writes a changed status, and the events.
    fn decision(self, requeue: Requeue) -> Decision {
        let mut steps = self.endpoints;
        if self.status != self.observed.cluster.status {
            steps.push(Step::Status(Box::new(self.status)));
            steps.extend(self.events);
        }
        Decision { steps, requeue }
    }
}
