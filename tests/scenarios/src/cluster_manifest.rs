//! Manifest that an owner writes for a cluster with one control-plane machine.

use std::fmt::Write as _;

/// Kubernetes version of the cluster's machines.
pub const KUBERNETES: &str = "v1.35.3";

/// Installation method of a cluster's machines.
#[derive(Debug, Clone, Copy)]
pub enum Install<'a> {
    /// Text of a template that the owner has written.
    Template(&'a str),
    /// OSImage of the box with this name.
    OsImage(&'a str),
}

/// A cluster of one control-plane machine.
#[derive(Debug, Clone, Copy)]
pub struct ClusterManifest<'a> {
    /// Name of the cluster, and of the objects that belong to it.
    pub name: &'a str,
    /// Installation method of the cluster's machines.
    pub install: Install<'a>,
    /// Command before kubeadm at the machine's first boot; the provider replaces `PROVIDER_ID` by
    /// the machine's ID.
    pub command: &'a str,
    /// Label that the Hardware must have, as `key: value`.
    pub hardware_label: &'a str,
    /// `wipeOnRelease` of the cluster's machines; `None` to omit the field.
    pub wipe_on_release: Option<&'a str>,
    /// Secret whose user data the machines get too; `None` to omit the field.
    pub user_data_secret: Option<&'a str>,
}

impl ClusterManifest<'_> {
    /// `Cluster`, `TinkerbellCluster`, `KubeadmControlPlane` and `TinkerbellMachineTemplate`: the
    /// contents of the provider's own cluster template, without workers.
    pub fn yaml(&self) -> String {
        let Self { name, command, hardware_label, .. } = self;
        let mut machine = self.wipe_on_release.map_or_else(String::new, wipe);
        if let Some(name) = self.user_data_secret {
            machine.push_str(&format!("      userDataSecret: {{name: {name}}}\n"));
        }
        let install = match self.install {
            Install::OsImage(name) => {
                machine.push_str(&format!("      osImage: {name}\n"));
                "  imageLookupOSDistro: debian\n".to_owned()
            }
            Install::Template(text) => format!("  templateOverride: |\n{}", block(text, 4)),
        };
        format!(
            "apiVersion: cluster.x-k8s.io/v1beta2\n\
             kind: Cluster\n\
             metadata: {{name: {name}}}\n\
             spec:\n\
             \x20 clusterNetwork:\n\
             \x20   pods: {{cidrBlocks: [192.168.0.0/16]}}\n\
             \x20   services: {{cidrBlocks: [172.26.0.0/16]}}\n\
             \x20 controlPlaneEndpoint: {{host: 10.77.0.100, port: 6443}}\n\
             \x20 controlPlaneRef:\n\
             \x20   apiGroup: controlplane.cluster.x-k8s.io\n\
             \x20   kind: KubeadmControlPlane\n\
             \x20   name: {name}\n\
             \x20 infrastructureRef:\n\
             \x20   apiGroup: infrastructure.cluster.x-k8s.io\n\
             \x20   kind: TinkerbellCluster\n\
             \x20   name: {name}\n\
             ---\n\
             apiVersion: infrastructure.cluster.x-k8s.io/v1beta1\n\
             kind: TinkerbellCluster\n\
             metadata: {{name: {name}}}\n\
             spec:\n{install}\
             ---\n\
             apiVersion: controlplane.cluster.x-k8s.io/v1beta2\n\
             kind: KubeadmControlPlane\n\
             metadata: {{name: {name}}}\n\
             spec:\n\
             \x20 replicas: 1\n\
             \x20 version: {KUBERNETES}\n\
             \x20 machineTemplate:\n\
             \x20   spec:\n\
             \x20     infrastructureRef:\n\
             \x20       apiGroup: infrastructure.cluster.x-k8s.io\n\
             \x20       kind: TinkerbellMachineTemplate\n\
             \x20       name: {name}\n\
             \x20 kubeadmConfigSpec:\n\
             \x20   preKubeadmCommands: [{command:?}]\n\
             \x20   initConfiguration:\n\
             \x20     nodeRegistration:\n\
             \x20       kubeletExtraArgs: [{{name: provider-id, value: PROVIDER_ID}}]\n\
             ---\n\
             apiVersion: infrastructure.cluster.x-k8s.io/v1beta1\n\
             kind: TinkerbellMachineTemplate\n\
             metadata: {{name: {name}}}\n\
             spec:\n\
             \x20 template:\n\
             \x20   spec:\n\
{machine}\
             \x20     bootOptions: {{bootMode: netboot}}\n\
             \x20     hardwareAffinity:\n\
             \x20       required:\n\
             \x20       - labelSelector: {{matchLabels: {{{hardware_label}}}}}\n"
        )
    }
}

fn wipe(method: &str) -> String {
    format!("      wipeOnRelease: {method}\n")
}

/// Indents lines for a YAML block scalar.
fn block(text: &str, indent: usize) -> String {
    text.lines().fold(String::new(), |mut block, line| {
        let _ = writeln!(block, "{:indent$}{line}", "");
        block
    })
}
