//! Nodes in memory: a NUC in an emulator has no internet to download Kubernetes.

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use peers::built;
use qemu::{BoxProcess, BoxProgram, Host, Segment};

use crate::Lab;

/// Address of the host of the nodes.
const HOST: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 8);

/// Kubelets, API servers and etcd of the clusters on the machines of a lab. They run on a host of
/// their own in the rack, which gets the endpoint of a cluster with its first machine, or the
/// addresses of machines that are not emulated. The API server of a cluster listens on all
/// addresses of the host.
pub struct Nodes {
    process: BoxProcess,
    /// Folder with the Kubernetes version of each machine whose installed system has called
    /// kubeadm.
    disks: PathBuf,
    host: Host,
}

impl Nodes {
    /// Starts them without machines. They know the machines and their user data from the box.
    ///
    /// # Errors
    /// The host cannot be added, or the program cannot be built.
    pub fn start(lab: &Lab) -> anyhow::Result<Self> {
        let host = lab.rack.add_host("nodes", &[(Segment::Near, HOST)])?;
        let disks = lab.rack.work_dir().join("nodes");
        fs::create_dir_all(&disks).context("cannot make the folder of the nodes")?;
        let program = built("workload-clusters", &[])?.remove(0);
        let log = lab.rack.dir().join("nodes.log");
        let program = BoxProgram::new(program, log)
            .args(["--kubeconfig".as_ref(), lab.kubeconfig().as_os_str()])
            .args(["--disks".as_ref(), disks.as_os_str()]);
        let process = host.spawn(program)?;
        Ok(Self { process, disks, host })
    }

    /// Takes the endpoint of a cluster, as kube-vip does on the first machine, or the address of a
    /// machine.
    ///
    /// # Errors
    /// The kernel refuses the address.
    pub fn take(&self, endpoint: Ipv4Addr) -> anyhow::Result<()> {
        self.host.ip(&format!("address add {endpoint}/32 dev eth0\n"))?;
        Ok(())
    }

    /// Gives an address back, such as the endpoint of a deleted cluster.
    ///
    /// # Errors
    /// The host does not have the address.
    pub fn give_back(&self, endpoint: Ipv4Addr) -> anyhow::Result<()> {
        self.host.ip(&format!("address del {endpoint}/32 dev eth0\n"))?;
        Ok(())
    }

    /// Lets a machine run kubeadm of this Kubernetes version, with the user data of its Hardware.
    ///
    /// # Errors
    /// The version cannot be written.
    pub fn run_kubeadm(&self, hardware: &str, version: &str) -> anyhow::Result<()> {
        fs::write(self.disks.join(hardware), version).context("cannot write the version")
    }

    /// Folder with the Kubernetes version of each machine, for actions that install machines.
    pub fn disks(&self) -> &Path {
        &self.disks
    }

    /// Starts another program on the host of the nodes.
    ///
    /// # Errors
    /// The program does not start.
    pub fn spawn(&self, program: BoxProgram) -> anyhow::Result<BoxProcess> {
        Ok(self.host.spawn(program)?)
    }

    /// Log of the program.
    pub fn log(&self) -> String {
        fs::read_to_string(self.process.log()).unwrap_or_default()
    }
}
