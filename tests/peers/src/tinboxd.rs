//! The product itself: the real `tinboxd`, for tests of its API.

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use tempfile::TempDir;

use crate::{Kubectl, Process, built, loopback_address};

/// Maximum time from the start of `tinboxd` until its API is ready.
const START_LIMIT: Duration = Duration::from_secs(60);

/// A running `tinboxd` on an address of the loopback network, with fresh state; ended when dropped.
pub struct Tinboxd {
    process: Process,
    folder: TempDir,
    program: PathBuf,
    address: Ipv4Addr,
    /// Own host name; `None` for that of this machine.
    host: Option<String>,
}

impl Tinboxd {
    /// Starts the program whose path is in the environment variable `TINBOXD`, or else the built
    /// `tinboxd`, and waits until the API is ready.
    ///
    /// # Errors
    /// `tinboxd` is not built or does not start; the error contains the end of its log.
    pub fn start() -> Result<Self> {
        Self::start_with("")
    }

    /// Starts `tinboxd` with more sections of `box.toml`. The word `ADDRESS` in these sections is
    /// replaced by the listen address.
    ///
    /// # Errors
    /// As [`Tinboxd::start`].
    pub fn start_with(sections: &str) -> Result<Self> {
        Self::start_named("", sections)
    }

    /// Starts it with `name` as a host name of its API; empty for none.
    ///
    /// # Errors
    /// As [`Tinboxd::start`].
    pub fn start_named(name: &str, sections: &str) -> Result<Self> {
        Self::start_as(None, name, sections)
    }

    /// Starts a box with a host name of its own, because several boxes of one management cluster
    /// need different names. Needs root.
    ///
    /// # Errors
    /// As [`Tinboxd::start`].
    pub fn start_on_host(host: &str, sections: &str) -> Result<Self> {
        Self::start_as(Some(host.to_owned()), "", sections)
    }

    fn start_as(host: Option<String>, name: &str, sections: &str) -> Result<Self> {
        let program = match std::env::var_os("TINBOXD") {
            Some(path) => path.into(),
            None => programs::find("tinboxd")?,
        };
        let folder = TempDir::with_prefix("tinboxd-").context("cannot make a folder")?;
        let address = loopback_address()?;
        let artifacts = folder.path().join("artifacts");
        fs::create_dir(&artifacts).context("cannot make a folder")?;
        // DHCP stays off, which is the default.
        let settings = format!(
            "[network]\ninterface = \"lo\"\naddress = \"{address}\"\n\n\
             [boot]\nartifacts = {artifacts:?}\n\n[api]\nlisten = \"{address}:6443\"\n{}\n{}",
            if name.is_empty() { String::new() } else { format!("names = [{name:?}]\n") },
            sections.replace("ADDRESS", &address.to_string()),
        );
        fs::write(folder.path().join("box.toml"), settings).context("cannot write box.toml")?;
        let process = spawn(&program, folder.path(), host.as_deref())?;
        let mut tinboxd = Self { process, folder, program, address, host };
        tinboxd.wait_until_ready()?;
        Ok(tinboxd)
    }

    /// Kills `tinboxd`, as a power cut would, and starts it again with the stored state.
    ///
    /// # Errors
    /// `tinboxd` does not start; the error contains the end of its log.
    pub fn restart(&mut self) -> Result<()> {
        self.process.kill();
        self.process = spawn(&self.program, self.folder.path(), self.host.as_deref())?;
        self.wait_until_ready()
    }

    /// Kills `tinboxd`, as a power cut would; [`Tinboxd::restart`] starts it again.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    fn wait_until_ready(&mut self) -> Result<()> {
        let kubectl = self.kubectl()?;
        self.process.wait_until("tinboxd to be ready", START_LIMIT, || kubectl.is_ready())
    }

    /// URL of the box's Kubernetes API.
    pub fn url(&self) -> String {
        format!("https://{}:6443", self.address)
    }

    /// Listen address on the loopback network.
    pub fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// Process ID of tinboxd.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Path of the administrator's kubeconfig.
    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("state/admin.kubeconfig")
    }

    /// Folder with the state, the log and the configuration of `tinboxd`.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A kubectl for the administrator.
    ///
    /// # Errors
    /// kubectl cannot be built.
    pub fn kubectl(&self) -> Result<Kubectl> {
        let program = built("kubectl", &["1.35"])?.remove(0);
        Kubectl::new(program, self.kubeconfig(), self.folder.path().join("home"))
    }
}

fn spawn(program: &Path, folder: &Path, host: Option<&str>) -> Result<Process> {
    let argument = |name: &str| folder.join(name).display().to_string();
    let arguments =
        ["--state".to_owned(), argument("state"), "--config".to_owned(), argument("box.toml")];
    let log = folder.join("tinboxd.log");
    let Some(host) = host else { return Process::start(program, &arguments, &log) };
    let script = "echo \"$0\" >/proc/sys/kernel/hostname && exec \"$@\"";
    let before = ["--uts", "sh", "-c", script, host].map(str::to_owned).into_iter();
    let all = before.chain([program.display().to_string()]).chain(arguments);
    Process::start(&crate::find("unshare", "util-linux")?, &all.collect::<Vec<_>>(), &log)
}
