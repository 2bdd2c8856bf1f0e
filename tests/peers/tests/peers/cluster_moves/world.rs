//! A box with machines that have BMCs, and two management clusters that `clusterctl` prepared.

use api::management_cluster::ManagementCluster;
use peers::bmc_sim::{BmcSim, Config};
use peers::cluster_api::{ManagerPlan, Series};
use peers::clusterctl::{
    LocalProvider, NAME, SECTIONS, Workstation, cert_manager, program as clusterctl,
};
use peers::{Cluster, Printed};
use serde_json::{Value, json};

use crate::agents::rack::Rack;
use crate::cluster_nodes::hosts::Hosts;
use crate::cluster_nodes::management::{Management, good};

/// The newest pinned version of clusterctl.
pub const VERSION: &str = "1.14";

/// A management cluster that is paired with the box.
pub struct Side {
    pub management: Management,
    /// Name of the pairing.
    pub name: &'static str,
    /// Configuration of clusterctl with the providers of this cluster.
    pub config: String,
    /// Lines of the configuration for Cluster API's own providers.
    pub own: String,
}

/// All programs of the test.
pub struct World {
    pub hosts: Hosts,
    pub workstation: Workstation,
    /// Version of the clusterctl that runs the next commands.
    pub version: &'static str,
    /// Release series of Cluster API in the management clusters.
    pub series: Series,
    bmcs: Vec<BmcSim>,
}

impl World {
    /// Starts the box with its pages, from which clusterctl reads, and without machines. The
    /// management clusters have this series of Cluster API.
    pub fn start(series: Series, version: &'static str) -> Self {
        let rack = Rack::start_named(NAME, SECTIONS);
        let workstation = Workstation::of(&rack.tinboxd).unwrap();
        Self { hosts: Hosts::start(rack), workstation, version, series, bmcs: Vec::new() }
    }

    /// Starts a management cluster with the box's provider, and pairs the box with the cluster.
    pub fn add_side(&self, name: &'static str) -> Side {
        let side = self.add_unpaired(name, |cluster, own| {
            let provider = self.workstation.provider().unwrap();
            let config = self.workstation.config(name, &[own, &provider]).unwrap();
            self.init(cluster, &config);
            config
        });
        self.hosts.pair(name, &side.management);
        side
    }

    /// Starts a management cluster. `init` gets the configuration of clusterctl for Cluster API's
    /// own providers, installs all providers, and returns the complete configuration.
    pub fn add_unpaired(
        &self,
        name: &'static str,
        init: impl FnOnce(&Cluster, &str) -> String,
    ) -> Side {
        let (mut own, mut config) = (String::new(), String::new());
        let management = Management::start(self.hosts.log(), self.series, |cluster, plan| {
            own = self.write_providers(name, plan);
            let kubectl = cluster.kubectl().unwrap();
            good(&kubectl, &["apply", "-f", "-"], &cert_manager());
            config = init(cluster, &own);
        });
        Side { management, name, config, own }
    }

    /// Writes Cluster API's own providers to a local repository, and returns their lines of the
    /// configuration.
    fn write_providers(&self, name: &str, plan: &ManagerPlan) -> String {
        let repository = self.workstation.folder().join(format!("repository-{name}"));
        let lines = plan.manifests().map(|(manager, list)| {
            let provider = LocalProvider::of_manager(plan.series, manager).unwrap();
            provider.write_list(&repository, list).unwrap()
        });
        lines.collect()
    }

    fn init(&self, cluster: &Cluster, config: &str) {
        let init = ["init", "--infrastructure", "tinbox", "--config", config];
        let kubeconfig = cluster.kubeconfig();
        let program = clusterctl(self.version).unwrap();
        let printed = self.workstation.good(&program, &init, Some(&kubeconfig)).unwrap();
        assert!(printed.contains("infrastructure-tinbox"), "{printed}");
    }

    /// Runs clusterctl for a management cluster, and returns its standard output.
    pub fn clusterctl(&self, side: &Side, arguments: &[&str]) -> String {
        self.clusterctl_with(side, &side.config, arguments)
    }

    /// Runs clusterctl with another configuration.
    pub fn clusterctl_with(&self, side: &Side, config: &str, arguments: &[&str]) -> String {
        let printed = self.run_clusterctl(side, config, arguments);
        assert!(printed.success, "{arguments:?}: {printed:?}");
        printed.out
    }

    /// Runs clusterctl with another configuration, and returns all that it printed.
    pub fn run_clusterctl(&self, side: &Side, config: &str, arguments: &[&str]) -> Printed {
        let arguments = [arguments, &["--config", config]].concat();
        let kubeconfig = side.management.kubeconfig();
        let program = clusterctl(self.version).unwrap();
        self.workstation.run(&program, &arguments, Some(&kubeconfig)).unwrap()
    }

    /// Writes another version of the box's release, as a copied release is laid out. Returns the
    /// configuration of clusterctl.
    pub fn write_release(&self, side: &Side, version: &str) -> String {
        let release = capi::Repository::new(version.trim_start_matches('v'));
        let provider = LocalProvider {
            name: "tinbox",
            kind: "InfrastructureProvider",
            label: "infrastructure-tinbox",
            version,
            series: "major: 0, minor: 1, contract: v1beta1",
        };
        let repository = self.workstation.folder().join("repository-box");
        let line = provider.write(&repository, release.components()).unwrap();
        self.workstation.config(&format!("{}-{version}", side.name), &[&side.own, &line]).unwrap()
    }

    /// Adds Hardware with a BMC, whose stock agent runs.
    pub fn add_machine(&mut self, name: &str, usage: &str) {
        self.hosts.add(name, usage, "a");
        let bmc = BmcSim::start(Config::default()).unwrap();
        let address = bmc.endpoint(None).address;
        let bmc_name = format!("bmc-{name}");
        let secret = json!({ "name": bmc_name, "namespace": "default" });
        self.hosts.rack.apply_object(&json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": secret,
            "stringData": { "username": BmcSim::USERNAME, "password": BmcSim::PASSWORD },
        }));
        self.hosts.rack.apply_object(&json!({
            "apiVersion": "bmc.tinkerbell.org/v1alpha1", "kind": "Machine", "metadata": secret,
            "spec": { "connection": {
                "host": address.host, "port": address.port, "authSecretRef": secret,
                "insecureTLS": true,
            } },
        }));
        let reference = json!({ "apiGroup": "bmc.tinkerbell.org", "kind": "Machine",
            "name": bmc_name });
        let patch = json!({ "spec": { "bmcRef": reference } }).to_string();
        good(
            &self.hosts.rack.kubectl,
            &["patch", "hardware", name, "--type=merge", "-p", &patch],
            "",
        );
        self.bmcs.push(bmc);
    }

    /// Returns all commands for power and boot device that the BMCs received.
    pub fn power_commands(&self) -> Value {
        let chassis = self.bmcs.iter().map(BmcSim::chassis);
        chassis.map(|it| json!({ "controls": it.controls, "options": it.options })).collect()
    }

    /// Returns true for each machine that has power.
    pub fn are_on(&self) -> Vec<bool> {
        self.bmcs.iter().map(|bmc| bmc.chassis().on).collect()
    }

    /// Returns a ManagementCluster as the box stores it.
    pub fn pairing(&self, name: &str) -> ManagementCluster {
        let get = ["get", "managementclusters", name, "-o", "json"];
        serde_json::from_str(&good(&self.hosts.rack.kubectl, &get, "")).unwrap()
    }
}
