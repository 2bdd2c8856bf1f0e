//! Move of the cluster to a second management cluster and back.

use std::path::Path;

use serde_json::Value;

use super::{CLUSTER, QuickStart, SOON, init, pair};
use crate::{ManagementCluster, say, show};

impl QuickStart {
    /// Starts a second management cluster with all providers, and pairs the box with it.
    ///
    /// # Errors
    /// The step that failed.
    pub fn start_second(&self) -> anyhow::Result<ManagementCluster> {
        say("a second management cluster, with which the box is paired too");
        let management = &self.management;
        let second = management.start_second(|cluster| {
            init(management, cluster, (&self.workstation, &self.clusterctl), "second").map(drop)
        })?;
        pair(management, &second, "second")?;
        let own = management.lab.kubeconfig();
        let connected = |object: Option<&Value>| is_true(object, "Connected");
        management.wait_object(&own, ("managementclusters", "second"), SOON, connected)?;
        Ok(second)
    }

    /// Moves the cluster from one management cluster to the other by clusterctl, and waits until
    /// `machine` is ready there and gone here.
    ///
    /// # Errors
    /// clusterctl fails, or the box does not serve the machine in time.
    pub fn move_cluster(
        &self,
        from: &ManagementCluster,
        to: &ManagementCluster,
        machine: &str,
    ) -> anyhow::Result<()> {
        let target = to.kubeconfig().display().to_string();
        let arguments = ["move", "--to-kubeconfig", &target, "--config", &self.config];
        show("clusterctl move --to-kubeconfig OTHER.kubeconfig");
        print!("{}", self.clusterctl_for(from, &arguments)?);
        let wait = |kubeconfig: &Path, (resource, name), test: fn(Option<&Value>) -> bool| {
            self.management.wait_object(kubeconfig, (resource, name), SOON, test).map(drop)
        };
        wait(to.kubeconfig(), ("tinkerbellmachines", machine), |object| is_true(object, "Ready"))?;
        wait(to.kubeconfig(), ("machines", machine), |object| {
            is_true(object, "Ready") && is_true(object, "Available")
        })?;
        wait(to.kubeconfig(), ("clusters", CLUSTER), |object| is_true(object, "Available"))?;
        for (resource, name) in [("tinkerbellmachines", machine), ("clusters", CLUSTER)] {
            wait(from.kubeconfig(), (resource, name), |object| object.is_none())?;
        }
        Ok(())
    }
}

fn is_true(object: Option<&Value>, kind: &str) -> bool {
    let all = object.and_then(|it| it["status"]["conditions"].as_array());
    all.is_some_and(|all| all.iter().any(|it| it["type"] == kind && it["status"] == "True"))
}
