//! A box with machines that stock agents install. Their kubelets are in memory.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use peers::{Process, built, run};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::management::{Management, good, items};
use super::manifest::{self, Install, USE};
use crate::agents::rack::{Generation, Rack};
use crate::claim::program;

/// Action that installs a Kubernetes version on the disk of a machine.
const INSTALL: &str = r#"#!/bin/sh
echo "$KUBERNETES" >"/disks/$DISK"
echo "$DISK $KUBERNETES" >>/disks/log
"#;
/// Images of the actions of the box's own template, with their scripts. The first two install the
/// Kubernetes version in the location of the image.
const ACTIONS: [(&str, &str); 4] =
    [("oci2disk", STREAM), ("image2disk", STREAM), ("writefile", NOTHING), ("reboot", NOTHING)];
const STREAM: &str = r#"#!/bin/sh
version=$(echo "$IMG_URL" | busybox sed 's/.*\(v1\.[0-9.]*[0-9]\).*/\1/')
echo "$version" >"$DEST_DISK"
echo "${DEST_DISK##*/} $version" >>"${DEST_DISK%/*}/log"
"#;
const NOTHING: &str = "#!/bin/sh\n";
/// Folder of the disks. The box's own template gives actions only the folder `/dev` of the machine.
const DISKS: &str = "/dev/shm";
const FAILURE_DOMAIN: &str = "topology.tinbox.dev/failure-domain";

/// The box, its machines and their kubelets, ended when dropped.
pub struct Hosts {
    pub rack: Rack,
    image: String,
    disks: TempDir,
    agents: Vec<Process>,
    _kubelets: Process,
}

impl Hosts {
    /// Adds the kubelets to `rack`, whose own Hardware is deleted.
    pub fn start(rack: Rack) -> Self {
        // The agents of other tests have no disks.
        good(&rack.kubectl, &["delete", "hardware", "--all"], "");
        let image = rack.docker.publish("install", INSTALL).unwrap();
        let disks = TempDir::with_prefix_in("disks-", DISKS).unwrap();
        let kubeconfig = rack.tinboxd.kubeconfig();
        let arguments = [("kubeconfig", &*kubeconfig), ("disks", disks.path())]
            .map(|(flag, path)| format!("--{flag}={}", path.display()));
        let kubelets = built("workload-clusters", &[]).unwrap().remove(0);
        let log = rack.record().join("kubelets.txt");
        let kubelets = Process::start(&kubelets, &arguments, &log).unwrap();
        Self { rack, image, disks, agents: Vec::new(), _kubelets: kubelets }
    }

    /// Gives the Docker engine the images of the box's own template, as HookOS embeds some.
    pub fn embed_actions(&self) {
        for (name, script) in ACTIONS {
            let reference = format!("quay.io/tinkerbell/actions/{name}:latest");
            self.rack.docker.embed(name, &reference, script).unwrap();
        }
    }

    /// Path of the log of the kubelets.
    pub fn log(&self) -> PathBuf {
        self.rack.record().join("kubelets.txt")
    }

    /// Pairs the box with a management cluster under this name.
    pub fn pair(&self, name: &str, management: &Management) {
        pair(&self.rack, name, management);
    }

    /// Runs `tinbox capi` with the rights of the administrators of both sides, and returns its
    /// output.
    pub fn tinbox(&self, arguments: &[&str], management: &Management) -> String {
        tinbox(&self.rack, arguments, management)
    }

    /// Adds Hardware without a BMC, whose stock agent runs.
    pub fn add(&mut self, name: &str, usage: &str, domain: &str) {
        let number = self.agents.len() + 1;
        self.rack.apply_object(&json!({
            "apiVersion": "tinkerbell.org/v1alpha1",
            "kind": "Hardware",
            "metadata": { "name": name, "labels": { USE: usage, FAILURE_DOMAIN: domain } },
            "spec": {
                "agentID": name,
                "disks": [{ "device": self.disks.path().join(name) }],
                "interfaces": (1..=2).map(|network| json!({ "dhcp": {
                    "mac": format!("52:54:00:99:{network:02x}:{number:02x}"), "hostname": name,
                    "ip": { "address": address(network, number) },
                } })).collect::<Vec<_>>(),
            },
        }));
        self.agents.push(self.rack.agent(Generation::Today, name));
    }

    /// Returns the template of machines with this use, which installs this Kubernetes version.
    pub fn template(&self, usage: &str, version: &str) -> Value {
        let install = Install { image: &self.image, disks: self.disks.path() };
        manifest::template(install, usage, version)
    }

    /// Returns the number of installations that ran, of all machines.
    pub fn installations(&self) -> usize {
        fs::read_to_string(self.disks.path().join("log")).unwrap_or_default().lines().count()
    }

    /// Returns objects of the box.
    pub fn list(&self, resource: &str) -> Vec<Value> {
        items(&good(&self.rack.kubectl, &["get", resource, "-o", "json"], ""))
    }
}

/// Pairs the box of a rack with a management cluster under this name.
pub fn pair(rack: &Rack, name: &str, management: &Management) {
    let printed = tinbox(rack, &["pair", name], management);
    assert!(printed.contains("the box is connected"), "{printed}");
}

fn tinbox(rack: &Rack, arguments: &[&str], management: &Management) -> String {
    let mut tinbox = Command::new(program("tinbox"));
    tinbox.env_clear().arg("--kubeconfig").arg(rack.tinboxd.kubeconfig());
    tinbox.arg("capi").args(arguments);
    tinbox.arg("--management-kubeconfig").arg(management.flat_kubeconfig());
    let printed = run(tinbox, "").unwrap();
    assert!(printed.success, "{arguments:?}: {printed:?}");
    printed.out + &printed.err
}

/// Returns the address of the machine with this number in network 1 or 2.
fn address(network: usize, number: usize) -> String {
    format!("192.168.{network}.{}", 20 + number)
}
