//! A box with machines that stock agents install, and a management cluster that is paired with the
//! box.

use capi::Repository;
use peers::cluster_api::Series;
use peers::loopback_port;
use serde_json::Value;

use super::hosts::Hosts;
use super::management::{Management, good};
use super::manifest::{self, CONTROL_PLANE, WORKERS};
use crate::agents::rack::Rack;

/// All programs of the test.
pub struct Site {
    pub hosts: Hosts,
    pub management: Management,
    endpoint: (&'static str, u16),
}

impl Site {
    /// Starts all programs, and pairs the box.
    pub fn start() -> Self {
        let hosts = Hosts::start(Rack::start());
        let management = Management::start(hosts.log(), Series::V1_13, |cluster, plan| {
            let kubectl = cluster.kubectl().unwrap();
            let apply = |text: &str| {
                good(&kubectl, &["apply", "--server-side", "-f", "-"], text);
            };
            apply(Repository::new("0.1.0").components());
            plan.manifests().for_each(|(_, list)| apply(&list.to_string()));
        });
        hosts.embed_actions();
        hosts.pair("prod", &management);
        Self { hosts, management, endpoint: endpoint() }
    }

    /// Applies objects to the management cluster.
    pub fn apply(&self, objects: &[Value]) {
        self.management.apply(objects);
    }

    /// Applies the templates of all machines.
    pub fn apply_templates(&self) {
        self.apply(&[CONTROL_PLANE, WORKERS].map(manifest::template_of_all_versions));
    }

    /// Applies Cluster and TinkerbellCluster, whose lookup finds the images of the control plane.
    pub fn apply_cluster(&self) {
        let [cluster, mut infrastructure] = manifest::cluster(self.endpoint);
        infrastructure["spec"]["imageLookupBaseRegistry"] = manifest::REGISTRY.into();
        self.apply(&[cluster, infrastructure]);
    }
}

/// Returns host and port of a control plane. The box knows all loopback addresses as its own, and
/// refuses them as an endpoint.
pub fn endpoint() -> (&'static str, u16) {
    ("localhost", loopback_port().unwrap())
}
