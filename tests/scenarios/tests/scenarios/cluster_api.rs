//! Stock Cluster API Provider Tinkerbell drives the box from a management cluster of stock
//! programs.

use std::path::Path;
use std::time::Duration;

use scenarios::{
    ClusterManifest, ImageRegistry, Install, KUBERNETES, Lab, LabConfig, METADATA_URL, Management,
    NucConfig, RackConfig, WorkflowView, install_template,
};
use serde_json::Value;

use crate::watch::SMALL;

/// Timeout for boot, 1.5 GiB of image and Debian with cloud-init: all emulated, possibly in
/// parallel with another test.
const WHOLE: Duration = Duration::from_secs(1500);
/// Timeout for changes that need no boot of a machine.
const SOON: Duration = Duration::from_secs(240);

const PROVIDER_ID: &str = "tinkerbell://default/nuc1";
const OWNER: &str = "v1alpha1.tinkerbell.org/ownerName";
const JOBS: &str = "jobs.bmc.tinkerbell.org";
const LABEL: &str = "rack: \"one\"";

/// A lab with one labeled machine and a management cluster that controls the box.
fn managed(config: LabConfig) -> Management {
    let lab = Lab::start(config).unwrap();
    lab.push_nuc(1, "ssh-ed25519 AAAA scenario", "#cloud-config\n").unwrap();
    let mut management = Management::start(lab).unwrap();
    let own = management.lab.kubeconfig();
    let mut label = management.kubectl(&own);
    assert!(label.args(["label", "hardware", "nuc1", "rack=one"]).status().unwrap().success());
    let kubeconfig = management.lab.provider_kubeconfig().unwrap();
    see_little(&management, &kubeconfig);
    management.start_provider(&kubeconfig).unwrap();
    management
}

/// Checks the provider's role: it permits Workflows, but no Secrets, no deletion of Hardware and no
/// creation of BMC Machines.
fn see_little(management: &Management, kubeconfig: &Path) {
    for (verb, resource, may) in [
        ("list", "hardware.tinkerbell.org", "yes"),
        ("create", "workflows.tinkerbell.org", "yes"),
        ("delete", "hardware.tinkerbell.org", "no"),
        ("create", "machines.bmc.tinkerbell.org", "no"),
        ("get", "secrets", "no"),
    ] {
        let mut ask = management.kubectl(kubeconfig);
        let output = ask.args(["auth", "can-i", verb, resource]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert_eq!(said.trim(), may, "{verb} {resource}: {complaint}");
    }
    let mut read = management.kubectl(kubeconfig);
    let output = read.args(["get", "secrets"]).output().unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && complaint.contains("forbidden"), "{complaint}");
}

fn at<'a>(object: Option<&'a Value>, pointer: &str) -> Option<&'a Value> {
    object?.pointer(pointer)
}

/// Waits for a ready `TinkerbellMachine` and checks the other objects.
fn wait_ready(management: &Management, machine: &str, within: Duration) {
    let kubeconfig = management.kubeconfig().to_owned();
    let ready = |object: Option<&Value>| at(object, "/status/ready") == Some(&true.into());
    let resource = ("tinkerbellmachines", machine);
    let object = management.wait_object(&kubeconfig, resource, within, ready).unwrap();
    assert_eq!(at(object.as_ref(), "/spec/providerID"), Some(&PROVIDER_ID.into()));
    assert_eq!(at(object.as_ref(), "/spec/hardwareName"), Some(&"nuc1".into()));
    assert_eq!(at(object.as_ref(), "/status/addresses/0/address"), Some(&"10.77.0.11".into()));
    let provisioned = |object: Option<&Value>| {
        at(object, "/status/initialization/infrastructureProvisioned") == Some(&true.into())
            && at(object, "/status/phase") == Some(&"Provisioned".into())
            && at(object, "/spec/providerID") == Some(&PROVIDER_ID.into())
    };
    management.wait_object(&kubeconfig, ("machines", machine), SOON, provisioned).unwrap();
}

/// Deletes the cluster, without waiting for it.
fn delete_cluster(management: &Management, cluster: &str) {
    let mut delete = management.kubectl(management.kubeconfig());
    delete.args(["delete", "cluster", cluster, "--wait=false"]);
    assert!(delete.status().unwrap().success());
}

/// Waits until the cluster is deleted; then the machine must be off and the Hardware free.
fn wait_given_back(management: &Management, cluster: &str, machine: &str) {
    let (kubeconfig, own) = (management.kubeconfig().to_owned(), management.lab.kubeconfig());
    let gone = |object: Option<&Value>| object.is_none();
    management.wait_object(&kubeconfig, ("clusters", cluster), SOON * 2, gone).unwrap();
    assert!(!management.lab.rack.nuc(1).is_on(), "the machine was switched off");
    for resource in ["tinkerbellmachines", "machines"] {
        assert_eq!(management.object(&kubeconfig, resource, machine).unwrap(), None);
    }
    for resource in ["templates", "workflows"] {
        assert_eq!(management.object(&own, resource, machine).unwrap(), None, "{resource}");
    }
    let job = format!("{machine}-poweroff");
    let job = management.object(&own, JOBS, &job).unwrap().unwrap();
    let conditions = job.pointer("/status/conditions").and_then(Value::as_array).unwrap();
    let done = |one: &Value| one["type"] == "Completed" && one["status"] == "True";
    assert!(conditions.iter().any(done), "{job}");
    let hardware = management.object(&own, "hardware", "nuc1").unwrap().unwrap();
    let metadata = &hardware["metadata"];
    assert_eq!(metadata["labels"][OWNER], Value::Null, "{metadata}");
    assert_eq!(metadata["labels"]["rack"], "one", "{metadata}");
    assert!(metadata["finalizers"].as_array().is_none_or(Vec::is_empty), "{metadata}");
    let provisioned = &metadata["annotations"]["v1alpha1.tinkerbell.org/provisioned"];
    assert_eq!(*provisioned, Value::Null, "{metadata}");
}

/// Returns the cluster `edge` of one machine as clusterctl generates it from the template of the
/// provider's release.
fn stock_cluster(management: &Management) -> String {
    let peers = concat!(env!("CARGO_MANIFEST_DIR"), "/../peers");
    let script = Path::new(peers).join("tinkerbell/cluster-template.sh");
    let template = peers::printed(&script, &[]).unwrap().remove(0);
    let program = peers::clusterctl::program("1.14").unwrap();
    let mut generate = management.lab.rack.box_command(program);
    generate.env("KUBECONFIG", management.kubeconfig());
    generate.env("HOME", management.lab.rack.work_dir()).env("GOPROXY", "off");
    generate.env("CLUSTERCTL_DISABLE_VERSIONCHECK", "true");
    generate.env("CONTROL_PLANE_VIP", "10.77.0.100");
    generate.env("BASE_REGISTRY_URL", format!("{}/images", ImageRegistry::HOST));
    generate.args(["generate", "cluster", "edge", "--kubernetes-version", KUBERNETES]);
    generate.args(["--control-plane-machine-count=1", "--worker-machine-count=0", "--from"]);
    generate.arg(template);
    let printed = peers::run(generate, "").unwrap();
    assert!(printed.success, "{printed:?}");
    printed.out
}

#[test]
fn a_cluster_provisions_a_machine_and_gives_it_back() {
    let mut config = LabConfig::new(RackConfig::new("capt-debian").nuc(NucConfig::uefi()));
    config.images = true;
    config.plain_registries = vec![ImageRegistry::HOST.to_owned()];
    let management = managed(config);
    // The image that the provider requests by default. Debian serves as well.
    let artifact = format!("images/ubuntu-2004:{KUBERNETES}.gz");
    let registry = ImageRegistry::start(&management.lab, "debian.raw.zst", &artifact).unwrap();
    assert!(!management.lab.rack.nuc(1).is_on(), "the machine begins switched off");
    management.apply(&stock_cluster(&management)).unwrap();

    let machine = management.machine_of("edge", SOON).unwrap();
    let own = management.lab.kubeconfig();
    let claimed = |object: Option<&Value>| {
        let labels = at(object, "/metadata/labels");
        labels.is_some_and(|labels| labels[OWNER] == *machine)
    };
    management.wait_object(&own, ("hardware", "nuc1"), SOON, claimed).unwrap();
    // The template requests no power action: a person switches the machine on.
    management.wait_object(&own, ("workflows", &machine), SOON, |object| object.is_some()).unwrap();
    let nuc = management.lab.rack.nuc(1);
    nuc.power_on().unwrap();
    wait_ready(&management, &machine, WHOLE);
    let serial = nuc.serial();
    // cloud-init calls kubeadm. The image has no Kubernetes.
    serial.wait_for("kubeadm: not found", WHOLE).unwrap();
    let host = management.object(&own, "hardware", "nuc1").unwrap();
    let user_data = at(host.as_ref(), "/spec/userData").and_then(Value::as_str).unwrap();
    let bootstrap = ["kubeadm init", "kube-vip", PROVIDER_ID];
    assert!(bootstrap.iter().all(|it| user_data.contains(it)), "{user_data}");
    assert_eq!(crate::watch::switched_on(&management.lab), 0, "the template has no boot mode");
    assert_eq!(crate::watch::told(&management.lab, "action stream image started"), 1);
    let log = registry.log().unwrap();
    let asked = log.lines().filter(|line| line.contains(" GET /v2/") && line.contains("/blobs/"));
    // An interrupted read is resumed with a range request.
    let from_the_start = asked.filter(|line| !line.contains("bytes="));
    assert_eq!(from_the_start.count(), 1, "it is read there once:\n{log}");

    delete_cluster(&management, "edge");
    wait_given_back(&management, "edge", &machine);
    management.succeed();
}

#[test]
fn provider_and_box_are_killed_on_the_way() {
    let rack = RackConfig::new("capt-killed").nuc(NucConfig::bios());
    let mut management = managed(LabConfig::new(rack));
    let image = management.lab.image("tiny.raw.zst").unwrap();
    let cluster = ClusterManifest {
        name: "edge",
        install: Install::Template(&install_template("install", &image, METADATA_URL)),
        command: "true",
        hardware_label: LABEL,
        wipe_on_release: None,
        user_data_secret: None,
    };
    management.apply(&cluster.yaml()).unwrap();

    let machine = management.machine_of("edge", SOON).unwrap();
    let own = management.lab.kubeconfig();
    management.wait_object(&own, ("workflows", &machine), SOON, |object| object.is_some()).unwrap();
    management.restart_provider().unwrap();
    management.lab.daemon.restart().unwrap();
    management.lab.wait_until_ready().unwrap();

    let writing =
        |view: &WorkflowView| matches!(view.action("stream-image").as_str(), "RUNNING" | "SUCCESS");
    management.lab.wait_workflow(&machine, "to write its image", SMALL, writing).unwrap();
    management.lab.daemon.restart().unwrap();
    management.lab.wait_until_ready().unwrap();
    management.restart_provider().unwrap();

    wait_ready(&management, &machine, SMALL);
    management.lab.rack.nuc(1).serial().wait_for("TINY-READY", SMALL).unwrap();
    assert_eq!(crate::watch::switched_on(&management.lab), 1, "no power action was repeated");

    delete_cluster(&management, "edge");
    let job = format!("{machine}-poweroff");
    management.wait_object(&own, (JOBS, &job), SOON, |object| object.is_some()).unwrap();
    management.restart_provider().unwrap();
    management.lab.daemon.restart().unwrap();
    management.lab.wait_until_ready().unwrap();
    wait_given_back(&management, "edge", &machine);
    management.succeed();
}
