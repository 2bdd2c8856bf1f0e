//! The box as the provider of a management cluster of stock programs, paired by its own command.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::time::Duration;

use scenarios::{
    ClusterManifest, Install, KUBERNETES, Lab, LabConfig, METADATA_URL, Management, NucConfig,
    RackConfig, WorkflowView, install_template,
};
use serde_json::{Value, json};

use crate::watch::{SMALL, switched_on};

/// Timeout for boot, 1.5 GiB of image and Debian with cloud-init: all emulated, possibly in
/// parallel with another test.
const WHOLE: Duration = Duration::from_secs(1500);
/// Timeout for changes that need no boot of a machine.
const SOON: Duration = Duration::from_secs(240);
/// Bytes of the disk that are compared with zeros.
const BEGINNING: u64 = 32 << 20;
const PROVIDER_ID: &str = "tinkerbell://default/nuc1";
const OWNER: &str = "v1alpha1.tinkerbell.org/ownerName";

/// Check that finds each machine without a node unhealthy after 30 s, and the steps of the repair.
const HEALTH_CHECK: &str = "\
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: TinkerbellRemediationTemplate
metadata: {name: power-cycle}
spec:
  template:
    spec: {powerCycles: 1, healthTimeoutSeconds: 60}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: MachineHealthCheck
metadata: {name: edge}
spec:
  clusterName: edge
  selector: {matchLabels: {cluster.x-k8s.io/cluster-name: edge}}
  checks: {nodeStartupTimeoutSeconds: 30}
  remediation:
    templateRef:
      apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
      kind: TinkerbellRemediationTemplate
      name: power-cycle
";

/// User data that the box merges after the bootstrap data. Its command runs after those of the
/// bootstrap data, and shows a file of each part.
const SECOND_PART: &str = "\
apiVersion: v1
kind: Secret
metadata: {name: second-part}
stringData:
  value: |
    #cloud-config
    write_files:
    - {path: /run/second-part, content: written}
    runcmd:
    - echo FIRST=$(ls /run/kubeadm) SECOND=$(cat /run/second-part) >/dev/ttyS0
";

/// A lab with one labeled machine, and a management cluster that is paired with the box.
fn paired(config: LabConfig) -> Management {
    let lab = Lab::start(config).unwrap();
    lab.push_nuc(1, "ssh-ed25519 AAAA scenario", "#cloud-config\n").unwrap();
    let management = Management::start_paired(lab).unwrap();
    let own = management.lab.kubeconfig();
    kubectl(&management, &own, &["label", "hardware", "nuc1", "rack=one"]);
    let connected = |object: Option<&Value>| condition(object, "Connected").0 == "True";
    let cluster = ("managementclusters", "prod");
    management.wait_object(&own, cluster, SOON, connected).unwrap();
    management
}

fn kubectl(management: &Management, kubeconfig: &Path, arguments: &[&str]) {
    let status = management.kubectl(kubeconfig).args(arguments).status().unwrap();
    assert!(status.success(), "kubectl {arguments:?}");
}

/// Returns status and reason of a condition.
fn condition(object: Option<&Value>, kind: &str) -> (String, String) {
    let all = object.and_then(|it| it.pointer("/status/conditions")).and_then(Value::as_array);
    let found = all.and_then(|all| all.iter().find(|it| it["type"] == kind));
    let text = |field: &str| found.and_then(|it| it[field].as_str()).unwrap_or("").to_owned();
    (text("status"), text("reason"))
}

/// Waits until Cluster API has the provider ID and the addresses of a machine.
fn wait_provisioned(management: &Management, machine: &str, within: Duration) {
    let kubeconfig = management.kubeconfig();
    let ready = |object: Option<&Value>| condition(object, "Ready").0 == "True";
    management.wait_object(kubeconfig, ("tinkerbellmachines", machine), within, ready).unwrap();
    let provisioned = |object: Option<&Value>| {
        let Some(object) = object else { return false };
        object["status"]["initialization"]["infrastructureProvisioned"] == true
            && object["status"]["phase"] == "Provisioned"
            && object["spec"]["providerID"] == PROVIDER_ID
            && object["status"]["addresses"][0]["address"] == "10.77.0.11"
            && condition(Some(object), "InfrastructureReady").0 == "True"
    };
    management.wait_object(kubeconfig, ("machines", machine), SOON, provisioned).unwrap();
}

/// Creates the cluster `edge` of one machine with the small system. Returns the machine's name.
fn create_small(management: &Management, wipe_on_release: Option<&str>) -> String {
    let image = management.lab.image("tiny.raw.zst").unwrap();
    let cluster = ClusterManifest {
        name: "edge",
        install: Install::Template(&install_template("install", &image, METADATA_URL)),
        command: "true",
        hardware_label: "rack: \"one\"",
        wipe_on_release,
        user_data_secret: None,
    };
    management.apply(&cluster.yaml()).unwrap();
    management.machine_of("edge", SOON).unwrap()
}

/// Returns true if the beginning of the machine's disk, where the small system is, has only zeros.
fn is_blank(management: &Management) -> bool {
    let mut bytes = Vec::new();
    let disk = File::open(management.lab.rack.nuc(1).disk()).unwrap();
    disk.take(BEGINNING).read_to_end(&mut bytes).unwrap();
    bytes.iter().all(|byte| *byte == 0)
}

/// Kills the box with SIGKILL and starts it again.
fn restart(management: &mut Management) {
    management.lab.daemon.restart().unwrap();
    management.lab.wait_until_ready().unwrap();
}

fn delete(management: &Management, cluster: &str) {
    let arguments = ["delete", "cluster", cluster, "--wait=false"];
    kubectl(management, management.kubeconfig(), &arguments);
}

/// Waits until the deleted cluster is gone. Then the machine must be off and the Hardware free.
fn wait_deleted(management: &Management, cluster: &str, machine: &str) {
    let (kubeconfig, own) = (management.kubeconfig(), management.lab.kubeconfig());
    let gone = |object: Option<&Value>| object.is_none();
    management.wait_object(kubeconfig, ("clusters", cluster), SOON * 2, gone).unwrap();
    assert!(!management.lab.rack.nuc(1).is_on(), "the machine was switched off");
    for resource in ["tinkerbellmachines", "machines"] {
        assert_eq!(management.object(kubeconfig, resource, machine).unwrap(), None);
    }
    for resource in ["templates", "workflows"] {
        assert_eq!(management.object(&own, resource, machine).unwrap(), None, "{resource}");
    }
    let host = management.object(&own, "hardware", "nuc1").unwrap().unwrap();
    let metadata = &host["metadata"];
    assert_eq!(metadata["labels"][OWNER], Value::Null, "{metadata}");
    assert_eq!(metadata["labels"]["rack"], "one", "{metadata}");
    assert!(metadata["finalizers"].as_array().is_none_or(Vec::is_empty), "{metadata}");
    assert_eq!(host["spec"].get("userData"), None, "{metadata}");
}

#[test]
fn the_box_provisions_a_machine_of_cluster_api_and_frees_it() {
    let mut config = LabConfig::new(RackConfig::new("provider-debian").nuc(NucConfig::uefi()));
    config.images = true;
    let management = paired(config);
    let own = management.lab.kubeconfig();
    let image = management.lab.image("debian.raw.zst").unwrap();
    let os_image = json!({
        "apiVersion": "tinbox.dev/v1alpha1", "kind": "OSImage",
        "metadata": { "name": "debian-12", "namespace": "default" },
        "spec": { "url": image.url, "checksum": { "sha256": image.sha256 },
            "kubernetesVersion": KUBERNETES, "os": { "distro": "debian", "version": "12" } },
    });
    let path = management.lab.file("os-image.json", &os_image.to_string()).unwrap();
    kubectl(&management, &own, &["apply", "-f", path.to_str().unwrap()]);
    let cluster = ClusterManifest {
        name: "edge",
        install: Install::OsImage("debian-12"),
        command: "echo BOOTSTRAPPED=PROVIDER_ID HOST=$(hostname) >/dev/ttyS0",
        hardware_label: "rack: \"one\"",
        wipe_on_release: None,
        user_data_secret: Some("second-part"),
    };
    assert!(!management.lab.rack.nuc(1).is_on(), "the machine begins switched off");
    management.apply(SECOND_PART).unwrap();
    management.apply(&cluster.yaml()).unwrap();
    let machine = management.machine_of("edge", SOON).unwrap();
    wait_provisioned(&management, &machine, WHOLE);
    let serial = management.lab.rack.nuc(1).serial();
    serial.wait_for(&format!("BOOTSTRAPPED={PROVIDER_ID} HOST=nuc1"), WHOLE).unwrap();
    serial.wait_for("FIRST=kubeadm.yaml SECOND=written", WHOLE).unwrap();
    assert_eq!(switched_on(&management.lab), 1, "the machine was switched on once");
    delete(&management, "edge");
    wait_deleted(&management, "edge", &machine);
    management.succeed();
}

#[test]
fn the_box_is_killed_on_the_way_and_does_nothing_twice() {
    let rack = RackConfig::new("provider-killed").nuc(NucConfig::bios());
    let mut management = paired(LabConfig::new(rack));
    let own = management.lab.kubeconfig();
    let machine = create_small(&management, Some("Zero"));
    restart(&mut management);
    let exists = |object: Option<&Value>| object.is_some();
    management.wait_object(&own, ("workflows", &machine), SOON, exists).unwrap();
    restart(&mut management);
    let writing =
        |view: &WorkflowView| matches!(view.action("stream-image").as_str(), "RUNNING" | "SUCCESS");
    management.lab.wait_workflow(&machine, "to write its image", SMALL, writing).unwrap();
    restart(&mut management);
    wait_provisioned(&management, &machine, SMALL);
    management.lab.rack.nuc(1).serial().wait_for("TINY-READY", SMALL).unwrap();
    restart(&mut management);
    assert_eq!(switched_on(&management.lab), 1, "no power action was repeated");
    assert!(!is_blank(&management), "the disk has the system");
    delete(&management, "edge");
    let wiping = |object: Option<&Value>| condition(object, "Ready").1 == "WipingDisks";
    let kubeconfig = management.kubeconfig().to_owned();
    let resource = ("tinkerbellmachines", &*machine);
    management.wait_object(&kubeconfig, resource, SOON, wiping).unwrap();
    restart(&mut management);
    wait_deleted(&management, "edge", &machine);
    assert!(is_blank(&management), "the disk was erased before the release");
    management.succeed();
}

#[test]
fn an_unhealthy_machine_is_switched_off_and_on_then_replaced() {
    let rack = RackConfig::new("provider-repaired").nuc(NucConfig::bios());
    let mut management = paired(LabConfig::new(rack));
    let own = management.lab.kubeconfig();
    let machine = create_small(&management, None);
    wait_provisioned(&management, &machine, SMALL);
    management.apply(HEALTH_CHECK).unwrap();
    let kubeconfig = management.kubeconfig().to_owned();
    let request = ("tinkerbellremediations", &*machine);
    let wait_phase = |management: &Management, phase: &str| {
        let is_phase = |object: Option<&Value>| {
            object.is_some_and(|object| object["status"]["phase"] == phase)
        };
        management.wait_object(&kubeconfig, request, SOON, is_phase).unwrap().unwrap()
    };
    wait_phase(&management, "PowerCycling");
    restart(&mut management);
    let waiting = wait_phase(&management, "WaitingForHealth");
    assert_eq!(waiting["status"]["powerCycles"], 1);
    assert_eq!(switched_on(&management.lab), 2, "one installation and one power cycle");
    assert!(management.lab.rack.nuc(1).is_on(), "the machine runs again");
    wait_phase(&management, "Replacing");
    kubectl(&management, &kubeconfig, &["delete", "machinehealthcheck", "edge"]);
    let gone = |object: Option<&Value>| object.is_none();
    management.wait_object(&kubeconfig, ("machines", &machine), SOON, gone).unwrap();
    let next = management.machine_of("edge", SOON).unwrap();
    assert_ne!(next, machine, "the control plane replaced the machine");
    let owned = |object: Option<&Value>| {
        object.is_some_and(|object| object["metadata"]["labels"][OWNER] == *next)
    };
    management.wait_object(&own, ("hardware", "nuc1"), SOON, owned).unwrap();
    wait_provisioned(&management, &next, SMALL);
    delete(&management, "edge");
    wait_deleted(&management, "edge", &next);
    management.succeed();
}
