//! Stock Cluster API Provider Tinkerbell drives the box.

use std::time::{Duration, Instant};

use anyhow::ensure;
use scenarios::{
    CLOUD_INIT, ClusterManifest, Install, Lab, LabConfig, Management, NucConfig, RackConfig,
    Screen, install_template, say, show, show_run,
};
use serde_json::Value;

/// Timeout from power-on to readiness of the emulated machine.
const WHOLE: Duration = Duration::from_secs(1500);

/// First command of the installed system; the provider replaces `PROVIDER_ID` by the machine's ID.
const COMMAND: &str =
    "echo $(hostname) is PROVIDER_ID, says Cluster API through the box >/dev/ttyS0";

pub fn run() -> anyhow::Result<()> {
    say("a rack with one UEFI NUC, switched off, and the box");
    let lab = Lab::start(LabConfig::new(RackConfig::new("demo-capi").nuc(NucConfig::uefi())))?;
    show("tinbox hardware push --file nuc1.yaml");
    lab.push_nuc(1, "ssh-ed25519 AAAA owner", "#cloud-config\n")?;
    let image = lab.image("debian.raw.zst")?;

    say("a management cluster of stock programs: etcd, kube-apiserver, Cluster API's core");
    let started = Instant::now();
    let mut management = Management::start(lab)?;
    println!("ready after {:.0} s", started.elapsed().as_secs_f32());
    show("tinbox capi kubeconfig --role capt --server https://10.77.0.1:6443 >capt.kubeconfig");
    let kubeconfig = management.lab.provider_kubeconfig()?;
    show("capt --external-kubeconfig capt.kubeconfig &");
    management.start_provider(&kubeconfig)?;

    let template = install_template("debian", &image, CLOUD_INIT);
    let cluster = ClusterManifest {
        name: "edge",
        install: Install::Template(&template),
        command: COMMAND,
        hardware_label: "rack: \"one\"",
        wipe_on_release: None,
        user_data_secret: None,
    };
    let own = management.lab.kubeconfig();
    box_kubectl(&management, &["label", "hardware", "nuc1", "rack=one"])?;
    say("a cluster with one control-plane machine, in the management cluster");
    show("kubectl apply -f edge.yaml");
    print!("{}", management.apply(&cluster.yaml())?);
    let begun = Instant::now();
    let machine = management.machine_of("edge", WHOLE)?;
    let there = |object: Option<&Value>| object.is_some();
    management.wait_object(&own, ("workflows", &machine), WHOLE, there)?;
    say("the provider has claimed the Hardware and made a Template and a Workflow on the box");
    box_kubectl(&management, &["get", "hardware,template,workflow", "--show-labels"])?;

    show(&format!("tinbox workflow events {machine} --follow"));
    let follow = management.lab.command(&["workflow", "events", &machine, "--follow"])?;
    Screen::new().relay(follow, "nuc1", '>')?;
    let ready = |object: Option<&Value>| {
        object.and_then(|it| it.pointer("/status/ready")) == Some(&true.into())
    };
    let at_home = management.kubeconfig().to_owned();
    management.wait_object(&at_home, ("tinkerbellmachines", &machine), WHOLE, ready)?;
    say(&format!("the machine is ready after {:.0} s", begun.elapsed().as_secs_f32()));
    kubectl(&management, &["get", "clusters,machines,tinkerbellmachines"])?;
    show("tinbox machine history nuc1");
    print!("{}", management.lab.story("nuc1")?);
    say("its first boot reads from the box what Cluster API wants it to do");
    let line = management.lab.rack.nuc(1).serial().wait_for("through the box", WHOLE)?;
    println!("console of nuc1: {}", line.text.trim());

    say("the cluster is deleted: the machine is switched off and the Hardware is free again");
    kubectl(&management, &["delete", "cluster", "edge", "--timeout=300s"])?;
    box_kubectl(&management, &["get", "hardware,jobs.bmc.tinkerbell.org", "--show-labels"])?;
    ensure!(!management.lab.rack.nuc(1).is_on(), "nuc1 is still on");
    println!("nuc1 is off");
    management.succeed();
    Ok(())
}

fn kubectl(management: &Management, arguments: &[&str]) -> anyhow::Result<()> {
    let mut command = management.kubectl(management.kubeconfig());
    show_run(&format!("kubectl {}", arguments.join(" ")), command.args(arguments))
}

fn box_kubectl(management: &Management, arguments: &[&str]) -> anyhow::Result<()> {
    let text = format!("kubectl --kubeconfig box.kubeconfig {}", arguments.join(" "));
    let mut command = management.kubectl(&management.lab.kubeconfig());
    show_run(&text, command.args(arguments))
}
