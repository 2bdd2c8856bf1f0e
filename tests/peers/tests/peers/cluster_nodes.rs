//! The whole life of a cluster of Cluster API on the machines of a box: Nodes, scaling, rollouts and
//! deletion. Stock agents install the machines. An in-memory API stands in for the kubelets.

mod manifest;
mod site;

use manifest::{CONTROL_PLANE, control_plane};
use serde_json::Value;
use site::Site;

/// Kubernetes version of the machines before the rollout.
const BEFORE: &str = "v1.34.3";

/// Returns true if a Machine runs with a Node of this version.
fn runs(machine: &Value, version: &str) -> bool {
    let status = &machine["status"];
    status["phase"] == "Running"
        && status["nodeRef"]["name"].is_string()
        && status["nodeInfo"]["kubeletVersion"] == version
}

#[test]
fn a_cluster_lives_on_machines_of_the_box() {
    let mut site = Site::start();
    site.add_machine("c1", CONTROL_PLANE, "a");
    site.apply_template(CONTROL_PLANE, BEFORE);
    site.apply_cluster();
    site.apply(&[control_plane(1, BEFORE)]);
    site.wait("a machine with a Node", || {
        let machines = site.list("machines");
        machines.len() == 1 && machines.iter().all(|it| runs(it, BEFORE))
    });
    assert_eq!(site.nodes().len(), 1);
}
