//! The quick start of Cluster API with the box as the provider, from `clusterctl init` to the
//! deletion of the cluster, with live output. On the box itself only Hardware and OSImage are
//! written.

mod green;
mod moved;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use peers::cluster_api::Series;
use peers::clusterctl::{self, CONTROL_PLANE, LocalProvider, NAME, Workstation};
use qemu::{Action, Mark, NucConfig, Origin, RackConfig};
use serde_json::{Value, json};

use self::green::Green;
use crate::nodes::Nodes;
use crate::ssh_key::SshKey;
use crate::{
    KUBERNETES, Lab, LabConfig, Management, ManagementCluster, Screen, say, show, show_run,
};

/// The newest pinned version of clusterctl.
const CLUSTERCTL: &str = "1.14";
/// Timeout from power-on to the end of cloud-init of the emulated machine.
const WHOLE: Duration = Duration::from_secs(1500);
/// Timeout for changes that need no boot of a machine.
const SOON: Duration = Duration::from_secs(300);
const CLUSTER: &str = "edge";
/// Operating system of the OSImage.
const SYSTEM: &str = "debian-12";
/// First line of cloud-init on the console of the installed system.
const CLOUD_INIT: &str = "Cloud-init v.";
/// Message of the installed system's shell when cloud-init calls kubeadm: the image has no
/// Kubernetes.
const KUBEADM: &str = "kubeadm: not found";
/// Labels of a Hardware in use.
const OWNER: [&str; 2] =
    ["v1alpha1.tinkerbell.org/ownerName", "v1alpha1.tinkerbell.org/ownerNamespace"];
/// Annotation of a Hardware whose machine is installed.
const PROVISIONED: &str = "v1alpha1.tinkerbell.org/provisioned";

/// A management cluster whose provider is the box, and one NUC.
pub struct QuickStart {
    /// The management cluster, with the rack and the box.
    pub management: Management,
    /// Kubelets, API server and etcd of the cluster.
    pub nodes: Nodes,
    /// Key of the owner of the machine.
    pub key: SshKey,
    workstation: Workstation,
    clusterctl: PathBuf,
    /// Path of the configuration of clusterctl.
    config: String,
}

impl QuickStart {
    /// Starts all programs in a rack with this name, installs the providers by `clusterctl init`,
    /// and pairs the box.
    ///
    /// # Errors
    /// The step that failed.
    pub fn start(rack: &str) -> anyhow::Result<Self> {
        say("a rack with one UEFI NUC, switched off, and the box");
        let mut config = LabConfig::new(RackConfig::new(rack).nuc(NucConfig::uefi()));
        (config.images, config.pages) = (true, true);
        config.name = NAME.to_owned();
        let lab = Lab::start(config)?;
        show("tinbox hardware push --file nuc1.yaml");
        let key = SshKey::generate(&lab)?;
        lab.push_nuc(1, key.public(), "#cloud-config\n")?;
        let nodes = Nodes::start(&lab)?;
        let pages = SocketAddr::from((Ipv4Addr::new(10, 77, 0, 1), 443));
        let workstation = Workstation::new(pages, lab.authority())?;
        let clusterctl = clusterctl::program(CLUSTERCTL)?;

        say("a management cluster of stock programs: etcd, kube-apiserver, no provider yet");
        let mut path = String::new();
        let begun = Instant::now();
        let management = Management::start_with(lab, |management| {
            path = init(management, &management.cluster, (&workstation, &clusterctl), "first")?;
            say("Cluster API's managers start as processes: core, bootstrap, control plane");
            Ok(())
        })?;
        println!("ready after {:.0} s", begun.elapsed().as_secs_f32());
        let new = Self { management, nodes, key, workstation, clusterctl, config: path };
        new.pair()?;
        Ok(new)
    }

    fn pair(&self) -> anyhow::Result<()> {
        say("the box connects to the management cluster; nothing of the box runs there");
        pair(&self.management, &self.management.cluster, "prod")?;
        let mut deployments = self.kubectl();
        deployments.args(["get", "deployments", "--namespace", "tinbox-system"]);
        show_run("kubectl get deployments --namespace tinbox-system", &mut deployments)
    }

    /// Creates the cluster from the box's own template, and waits until its machine has booted the
    /// installed system. Returns the name of the machine.
    ///
    /// # Errors
    /// The step that failed.
    pub fn create(&self) -> anyhow::Result<String> {
        let management = &self.management;
        say("an OSImage on the box: the box itself serves its file");
        let own = management.lab.kubeconfig();
        let image = management.lab.file("os-image.json", &self.os_image()?.to_string())?;
        let mut apply = management.kubectl(&own);
        apply.args(["apply", "-f"]).arg(&image);
        show_run("kubectl --kubeconfig box.kubeconfig apply -f os-image.yaml", &mut apply)?;

        say("a cluster from the box's template, with one machine for the control plane");
        let generate = format!(
            "generate cluster {CLUSTER} --flavor kube-vip --kubernetes-version {KUBERNETES} \
             --control-plane-machine-count 1 --worker-machine-count 0 --config"
        );
        show(&format!(
            "CONTROL_PLANE_VIP={CONTROL_PLANE} OS_IMAGE={SYSTEM} clusterctl {generate} \
             clusterctl.yaml >{CLUSTER}.yaml"
        ));
        let words: Vec<&str> = generate.split(' ').chain([self.config.as_str()]).collect();
        let yaml = self.clusterctl(&words)?;
        show(&format!("kubectl apply -f {CLUSTER}.yaml"));
        print!("{}", management.apply(&yaml)?);
        let machine = management.machine_of(CLUSTER, SOON)?;
        let there = |object: Option<&Value>| object.is_some();
        management.wait_object(&own, ("workflows", &machine), SOON, there)?;

        say("the box has claimed the Hardware, and switches the NUC on to install it");
        let mut get = management.kubectl(&own);
        get.args(["get", "hardware,workflow"]);
        show_run("kubectl --kubeconfig box.kubeconfig get hardware,workflow", &mut get)?;
        show(&format!("tinbox workflow events {machine} --follow"));
        let follow = management.lab.command(&["workflow", "events", &machine, "--follow"])?;
        Screen::new().relay(follow, "nuc1", '>')?;
        say("the NUC boots Debian, and cloud-init calls kubeadm, as Cluster API wants");
        for pattern in [CLOUD_INIT, KUBEADM] {
            let serial = management.lab.rack.nuc(1).serial();
            let (line, _) = serial.wait_for_whole(Mark::START, pattern, WHOLE)?;
            println!("console of nuc1: {}", line.text.trim());
        }
        Ok(machine)
    }

    fn os_image(&self) -> anyhow::Result<Value> {
        let image = self.management.lab.image("debian.raw.zst")?;
        Ok(json!({
            "apiVersion": "tinbox.dev/v1alpha1", "kind": "OSImage",
            "metadata": { "name": SYSTEM, "namespace": "default" },
            "spec": { "url": image.url, "checksum": { "sha256": image.sha256 },
                "kubernetesVersion": KUBERNETES, "os": { "distro": "debian", "version": "12" } },
        }))
    }

    /// Lets the machine join, waits until all objects of the cluster report success, and shows what
    /// clusterctl says.
    ///
    /// # Errors
    /// An object does not report success in time, or clusterctl prints another status than `True`.
    pub fn join(&self) -> anyhow::Result<()> {
        let management = &self.management;
        say("an emulated NUC has no internet: its kubelet, API server and etcd are in memory");
        self.nodes.take(CONTROL_PLANE.parse()?)?;
        self.nodes.run_kubeadm("nuc1", KUBERNETES)?;
        let begun = Instant::now();
        let mut green = Green::default();
        let waited = qemu::poll("the whole cluster to be True", SOON, || {
            let mut get = self.kubectl();
            get.args(["get", green::RESOURCES, "-o", "json"]);
            let printed = peers::run(get, "").ok().filter(|printed| printed.success)?;
            let list: Value = serde_json::from_str(&printed.out).ok()?;
            for line in green.update(list["items"].as_array()?) {
                println!("{:3.0} s: {line}", begun.elapsed().as_secs_f32());
            }
            green.is_complete().then_some(())
        });
        waited.with_context(|| {
            let described = self.clusterctl(&["describe", "cluster", CLUSTER]);
            format!("{}\n{}", described.unwrap_or_default(), self.nodes.log())
        })?;
        say("clusterctl shows the cluster");
        let kubeconfig = self.clusterctl(&["get", "kubeconfig", CLUSTER])?;
        let kubeconfig = management.lab.file("edge.kubeconfig", &kubeconfig)?;
        let mut nodes = management.kubectl(&kubeconfig);
        nodes.args(["get", "nodes"]);
        show_run("kubectl --kubeconfig edge.kubeconfig get nodes", &mut nodes)?;
        show_run("kubectl get machines", self.kubectl().args(["get", "machines"]))?;
        show(&format!("clusterctl describe cluster {CLUSTER}"));
        let described = self.clusterctl(&["describe", "cluster", CLUSTER])?;
        print!("{described}");
        ensure!(green::is_green(&described), "clusterctl shows a status that is not True");
        Ok(())
    }

    /// Deletes the cluster. Then the box must have switched the machine off by its BMC, and the
    /// Hardware must be free.
    ///
    /// # Errors
    /// The step that failed.
    pub fn delete(&self) -> anyhow::Result<()> {
        let nuc = self.management.lab.rack.nuc(1);
        let switched_off = || nuc.count(Origin::Bmc, Action::Off);
        let before = switched_off();
        ensure!(nuc.is_on(), "nuc1 is off before the deletion");
        self.check_used()?;
        say("the cluster is deleted: the machine is switched off and the Hardware is free again");
        let mut delete = self.kubectl();
        delete.args(["delete", "cluster", CLUSTER, "--timeout=300s"]);
        show_run(&format!("kubectl delete cluster {CLUSTER}"), &mut delete)?;
        let own = self.management.lab.kubeconfig();
        let mut get = self.management.kubectl(&own);
        get.args(["get", "hardware", "--show-labels"]);
        show_run("kubectl --kubeconfig box.kubeconfig get hardware --show-labels", &mut get)?;
        let uses = uses(&self.hardware()?);
        ensure!(uses.is_empty(), "nuc1 still has {}", uses.join(", "));
        let left = self.objects_of_installations()?;
        ensure!(left.is_empty(), "the box still has {left}");
        ensure!(!nuc.is_on(), "nuc1 is still on");
        ensure!(switched_off() > before, "the BMC of nuc1 has not switched it off");
        println!("nuc1 is off");
        Ok(())
    }

    /// Requires everything that the deletion must remove.
    fn check_used(&self) -> anyhow::Result<()> {
        let hardware = self.hardware()?;
        let uses = uses(&hardware);
        ensure!(uses.len() == USES, "nuc1 has only {}: {hardware}", uses.join(", "));
        let left = self.objects_of_installations()?;
        ensure!(left.lines().count() == 2, "expected a Template and a Workflow, found {left:?}");
        Ok(())
    }

    fn hardware(&self) -> anyhow::Result<Value> {
        let own = self.management.lab.kubeconfig();
        self.management.object(&own, "hardware", "nuc1")?.context("no Hardware")
    }

    /// Returns the Templates and Workflows of the box, one in a line.
    fn objects_of_installations(&self) -> anyhow::Result<String> {
        let mut get = self.management.kubectl(&self.management.lab.kubeconfig());
        get.args(["get", "templates,workflows", "--all-namespaces", "--output=name"]);
        let printed = peers::run(get, "")?;
        ensure!(printed.success, "kubectl get templates,workflows: {}", printed.err.trim());
        Ok(printed.out)
    }

    /// Stops everything and removes the rack's output.
    pub fn succeed(self) {
        let Self { management, nodes, .. } = self;
        drop(nodes);
        management.succeed();
    }

    /// Runs clusterctl, and returns its standard output.
    fn clusterctl(&self, arguments: &[&str]) -> anyhow::Result<String> {
        self.clusterctl_for(&self.management.cluster, arguments)
    }

    /// Runs clusterctl for a management cluster, and returns its standard output.
    fn clusterctl_for(
        &self,
        cluster: &ManagementCluster,
        arguments: &[&str],
    ) -> anyhow::Result<String> {
        let kubeconfig = Some(cluster.kubeconfig());
        let mut command = self.workstation.command(&self.clusterctl, arguments, kubeconfig);
        command.env("OS_IMAGE", SYSTEM);
        let printed = self.management.lab.rack.in_box(|| peers::run(command, ""))??;
        ensure!(printed.success, "clusterctl {}: {}", arguments.join(" "), printed.err.trim());
        Ok(printed.out)
    }

    fn kubectl(&self) -> Command {
        self.management.kubectl(self.management.kubeconfig())
    }
}

fn pair(management: &Management, cluster: &ManagementCluster, name: &str) -> anyhow::Result<()> {
    let text = format!("tinbox capi pair {name} --management-kubeconfig {name}.kubeconfig");
    show_run(&text, &mut management.pair(cluster, name)?)
}

/// Number of parts of a Hardware that a machine uses.
const USES: usize = OWNER.len() + 3;

/// Returns the parts of a Hardware that a machine uses, or has left.
fn uses(hardware: &Value) -> Vec<&'static str> {
    let metadata = &hardware["metadata"];
    let has_finalizers = metadata["finalizers"].as_array().is_some_and(|all| !all.is_empty());
    let all = OWNER.map(|label| (label, !metadata["labels"][label].is_null()));
    let all = all.into_iter().chain([
        (PROVISIONED, !metadata["annotations"][PROVISIONED].is_null()),
        ("finalizers", has_finalizers),
        ("user data", !hardware["spec"]["userData"].is_null()),
    ]);
    all.filter(|(_, is_there)| *is_there).map(|(part, _)| part).collect()
}

/// Installs all providers in a management cluster, and returns the path of the configuration of
/// clusterctl for this cluster, whose name is `name`.
fn init(
    management: &Management,
    cluster: &ManagementCluster,
    (workstation, clusterctl): (&Workstation, &Path),
    name: &str,
) -> anyhow::Result<String> {
    let rack = &management.lab.rack;
    say("clusterctl downloads the box's provider from the box: kinds and rights, no Deployment");
    management.apply_to(cluster.kubeconfig(), &clusterctl::cert_manager())?;
    show(&format!("curl {}", workstation.url()));
    let provider = rack.in_box(|| workstation.provider())??;
    print!("providers:\n{provider}");
    println!(
        "(clusterctl.yaml names local copies of Cluster API's own providers too, without Pods;"
    );
    println!(" of cert-manager there are only the kinds)");
    let repository = workstation.folder().join(format!("repository-{name}"));
    let mut providers = Vec::new();
    for (name, list) in management.manifests(cluster)? {
        providers
            .push(LocalProvider::of_manager(Series::V1_13, name)?.write_list(&repository, &list)?);
    }
    let config = workstation.config(name, &[&providers.concat(), &provider])?;
    let arguments = ["init", "--infrastructure", "tinbox", "--config", &config];
    let kubeconfig = Some(cluster.kubeconfig());
    let mut command = workstation.command(clusterctl, &arguments, kubeconfig);
    let text = "clusterctl init --infrastructure tinbox --config clusterctl.yaml";
    rack.in_box(|| show_run(text, &mut command))??;
    Ok(config)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{OWNER, PROVISIONED, USES, uses};

    #[test]
    fn a_hardware_in_use_is_not_free() {
        let free = json!({ "metadata": { "labels": { "rack": "one" }, "finalizers": [] },
            "spec": { "metadata": {} } });
        assert_eq!(uses(&free), Vec::<&str>::new());
        let used = json!({
            "metadata": { "labels": { OWNER[0]: "a", OWNER[1]: "b" }, "finalizers": ["c"],
                "annotations": { PROVISIONED: "true" } },
            "spec": { "userData": "#cloud-config" },
        });
        assert_eq!(uses(&used).len(), USES, "{:?}", uses(&used));
    }
}
