//! A rack with a running `tinboxd`.

mod settings;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use qemu::{BoxProcess, BoxProgram, Firmware, Rack, RackConfig, poll};
use serde_json::Value;
use stdx::testing::PATIENCE;

use crate::state::WorkflowView;
use crate::{Artifacts, Image, TemplateFile, install_template, nuc_manifest};

/// Seconds of silence before a machine is booted again. The emulator of a healthy machine may get
/// no CPU time for longer than the product's 60 s.
const SILENCE_SECS: u32 = 120;

/// Configuration of a lab.
pub struct LabConfig {
    /// Configuration of the rack.
    pub rack: RackConfig,
    /// Seconds of silence before a machine is booted again.
    pub silence_secs: u32,
    /// More lines of `[network]` in the box's configuration, such as its DHCP mode.
    pub network: String,
    /// True when the pushed Hardware contains an address for each machine.
    pub reservations: bool,
    /// True when the box fetches files of other servers for its machines.
    pub images: bool,
    /// True when the box serves its web pages, at `https://10.77.0.1`.
    pub pages: bool,
    /// Host name of the box in its certificate; empty for none.
    pub name: String,
    /// Registries of images that use `http`.
    pub plain_registries: Vec<String>,
    /// True when stock agents work too, which have no token.
    pub stock_agents: bool,
}

/// Configuration in which the box answers machines with a reservation, and is the network's only
/// DHCP server.
pub const RESERVED: &str = "mode = \"reserved\"";

impl LabConfig {
    /// A lab with this rack, and timeouts for emulated machines.
    pub fn new(rack: RackConfig) -> Self {
        let network = RESERVED.to_owned();
        Self {
            rack,
            silence_secs: SILENCE_SECS,
            network,
            reservations: true,
            images: false,
            pages: false,
            name: String::new(),
            plain_registries: Vec::new(),
            stock_agents: false,
        }
    }
}

/// A rack with the product in it.
pub struct Lab {
    /// The rack, with all its NUCs.
    pub rack: Rack,
    /// The running process of `tinboxd`.
    pub daemon: BoxProcess,
    artifacts: Artifacts,
    reservations: bool,
    state: PathBuf,
    files: PathBuf,
}

impl Lab {
    /// Builds the rack, starts `tinboxd` in it and waits until its API answers.
    ///
    /// # Errors
    /// The missing requirement, or the program that did not start.
    pub fn start(config: LabConfig) -> anyhow::Result<Self> {
        let artifacts = Artifacts::open()?;
        let rack = Rack::build(config.rack.clone())?;
        let work = rack.work_dir();
        let (state, files) = (work.join("state"), work.join("files"));
        fs::create_dir_all(&files).context("cannot make the lab's folder")?;
        let file = work.join("box.toml");
        let text = settings::box_toml(&config, artifacts.root(), &work.join("cache"));
        fs::write(&file, text).context("cannot write box.toml")?;
        let daemon = BoxProgram::new(programs::find("tinboxd")?, rack.dir().join("tinboxd.log"))
            .args(["--state".as_ref(), state.as_os_str()])
            .args(["--config".as_ref(), file.as_os_str()])
            // People and tests read its log as a file.
            .env("NO_COLOR", "1");
        let daemon = rack.spawn_box(daemon)?;
        let reservations = config.reservations;
        let lab = Self { rack, daemon, artifacts, reservations, state, files };
        lab.wait_until_ready()?;
        lab.wait_until_serving()?;
        Ok(lab)
    }

    /// Waits until the box has found no other DHCP server and answers machines.
    fn wait_until_serving(&self) -> anyhow::Result<()> {
        let serving = || self.event_about("eth0", "Serving").map(drop);
        poll("the box to serve its network", PATIENCE, serving)?;
        Ok(())
    }

    /// Waits until the API answers the administrator.
    ///
    /// # Errors
    /// The API does not answer in time; with the end of the log.
    pub fn wait_until_ready(&self) -> anyhow::Result<()> {
        let up = || {
            let output = self.cli(&["hardware", "list"]).ok()?;
            output.status.success().then_some(())
        };
        poll("the box's API to answer", PATIENCE, up).map_err(|error| {
            let log = fs::read_to_string(self.daemon.log()).unwrap_or_default();
            let lines: Vec<&str> = log.lines().collect();
            let end = lines[lines.len().saturating_sub(15)..].join("\n");
            anyhow::Error::new(error).context(format!("tinboxd's last words:\n{end}"))
        })
    }

    /// Path of the administrator's kubeconfig.
    pub fn kubeconfig(&self) -> PathBuf {
        self.state.join("admin.kubeconfig")
    }

    /// Path of the box's CA certificate.
    pub fn authority(&self) -> PathBuf {
        self.state.join("pki/ca.crt")
    }

    /// Path of the file with the one-time code that claims the box.
    pub fn claim_file(&self) -> PathBuf {
        self.state.join("claim.json")
    }

    /// Returns the page that claims the box, without a check of its certificate.
    ///
    /// # Errors
    /// The box does not serve pages.
    pub fn claim_page(&self) -> anyhow::Result<String> {
        let mut curl = self.rack.box_command("curl");
        let limit = PATIENCE.as_secs().to_string();
        curl.args(["-ksSf", "--max-time", &limit, "https://10.77.0.1/S"]);
        let output = curl.output().context("cannot run curl")?;
        let error = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "cannot fetch the page: {error}");
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Creates a kubeconfig with the minimum permissions that Cluster API Provider Tinkerbell needs
    /// on the box.
    ///
    /// # Errors
    /// The command's own message.
    pub fn provider_kubeconfig(&self) -> anyhow::Result<PathBuf> {
        let server = "https://10.77.0.1:6443";
        let text = self.tinbox(&["capi", "kubeconfig", "--role", "capt", "--server", server])?;
        let path = self.file("capt.kubeconfig", "")?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600))
            .context("cannot keep the provider's kubeconfig private")?;
        self.file("capt.kubeconfig", &text)
    }

    /// Returns a `tinbox` command that runs inside the box's namespace.
    ///
    /// # Errors
    /// The program is not built.
    pub fn command(&self, arguments: &[&str]) -> anyhow::Result<Command> {
        let mut command = self.rack.box_command(programs::find("tinbox")?);
        command.env("TINBOX_KUBECONFIG", self.kubeconfig()).args(arguments);
        Ok(command)
    }

    /// Runs `tinbox` to its end.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn cli(&self, arguments: &[&str]) -> anyhow::Result<Output> {
        self.command(arguments)?.output().context("cannot run tinbox")
    }

    /// Runs `tinbox` and returns its output.
    ///
    /// # Errors
    /// It fails; with its own message.
    pub fn tinbox(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let output = self.cli(arguments)?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "tinbox {}: {said}", arguments.join(" "));
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Writes a file of the owner, and returns its path.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn file(&self, name: &str, text: &str) -> anyhow::Result<PathBuf> {
        let path = self.files.join(name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(path)
    }

    /// An image that the box itself serves.
    ///
    /// # Errors
    /// There is no such image.
    pub fn image(&self, name: &str) -> anyhow::Result<Image> {
        let url = format!("http://10.77.0.1:7080/images/{name}");
        Ok(Image { url, sha256: self.artifacts.sha256(name)? })
    }

    /// Artifacts that the box serves.
    pub fn artifacts(&self) -> &Artifacts {
        &self.artifacts
    }

    /// Pushes the manifest of one NUC.
    ///
    /// # Errors
    /// The command's own message.
    pub fn push_nuc(&self, number: usize, ssh_key: &str, user_data: &str) -> anyhow::Result<()> {
        let nuc = self.rack.nuc(number);
        let uefi = nuc.config().firmware() == Firmware::Uefi;
        let text = nuc_manifest(nuc, uefi, self.reservations, ssh_key, user_data);
        let path = self.file(&format!("nuc{number}.yaml"), &text)?;
        self.tinbox(&["hardware", "push", "--file", text_of(&path)?])?;
        Ok(())
    }

    /// Creates a template that installs `image` and writes `files` into it.
    ///
    /// # Errors
    /// The command's own message.
    pub fn push_template(
        &self,
        name: &str,
        image: &Image,
        files: &[TemplateFile],
    ) -> anyhow::Result<()> {
        let text = install_template(name, image, files);
        let path = self.file(&format!("{name}.yaml"), &text)?;
        self.tinbox(&["template", "create", "--file", text_of(&path)?])?;
        Ok(())
    }

    /// Creates the library's template `debian` with the Debian image that the box serves; returns
    /// the command, for people to read.
    ///
    /// # Errors
    /// The command's own message.
    pub fn push_debian(&self) -> anyhow::Result<String> {
        let Image { url, .. } = self.image("debian.raw.zst")?;
        let (image, sums) = (format!("image_url={url}"), format!("sums_url={url}.sha256"));
        let create = ["template", "create", "--library", "debian"];
        let words = [&create[..], &["--set", &image, "--set", &sums]].concat();
        self.tinbox(&words)?;
        Ok(format!("tinbox {}", words.join(" ")))
    }

    /// Creates a workflow of the template for NUC `number`, named `<template>-nuc<number>`.
    ///
    /// # Errors
    /// The command's own message.
    pub fn create_workflow(&self, template: &str, number: usize) -> anyhow::Result<String> {
        let (name, hardware) = (format!("{template}-nuc{number}"), format!("nuc{number}"));
        self.tinbox(&[
            "workflow",
            "create",
            "--template",
            template,
            "--hardware",
            &hardware,
            "--name",
            &name,
        ])?;
        Ok(name)
    }

    /// Current state of a workflow.
    ///
    /// # Errors
    /// The command's own message, or output that is not valid JSON.
    pub fn workflow(&self, name: &str) -> anyhow::Result<WorkflowView> {
        let text = self.tinbox(&["-o", "json", "workflow", "get", name])?;
        let value: Value = serde_json::from_str(&text).context("workflow get printed no JSON")?;
        Ok(WorkflowView(value))
    }

    /// Waits until `test` is true of a workflow; a box that is down for a while is tolerated.
    ///
    /// # Errors
    /// It does not become true in time.
    pub fn wait_workflow(
        &self,
        name: &str,
        what: &str,
        within: Duration,
        mut test: impl FnMut(&WorkflowView) -> bool,
    ) -> anyhow::Result<WorkflowView> {
        let mut last = None;
        let found = poll(&format!("workflow {name}: {what}"), within, || {
            let view = self.workflow(name).ok()?;
            let good = test(&view);
            last = Some(view.clone());
            good.then_some(view)
        });
        found.map_err(|error| match last {
            Some(view) => {
                let actions = view.actions();
                anyhow::Error::new(error).context(format!("it is {:?} {actions:?}", view.state()))
            }
            None => error.into(),
        })
    }

    /// Waits until a workflow has succeeded.
    ///
    /// # Errors
    /// It fails, with the message of the failed action, or takes too long.
    pub fn wait_success(&self, name: &str, within: Duration) -> anyhow::Result<WorkflowView> {
        let view = self.wait_workflow(name, "to end", within, WorkflowView::ended)?;
        if view.state() != "SUCCESS" {
            bail!("workflow {name} ended as {}: {:?}", view.state(), view.actions());
        }
        Ok(view)
    }

    /// The first line of the box's log with an event `reason` of NUC `number`. The log is quick to
    /// read while a machine boots; `machine history` would start a program for each check.
    pub fn event(&self, number: usize, reason: &str) -> Option<String> {
        self.event_about(&format!("nuc{number}"), reason)
    }

    fn event_about(&self, object: &str, reason: &str) -> Option<String> {
        let log = fs::read_to_string(self.daemon.log()).ok()?;
        let (object, reason) = (format!("object=\"{object}\""), format!("reason=\"{reason}\""));
        let mut lines = log.lines();
        lines.find(|line| line.contains(&object) && line.contains(&reason)).map(str::to_owned)
    }

    /// History of a machine, as the CLI prints it.
    ///
    /// # Errors
    /// The command's own message.
    pub fn story(&self, machine: &str) -> anyhow::Result<String> {
        self.tinbox(&["machine", "history", machine])
    }
}

fn text_of(path: &Path) -> anyhow::Result<&str> {
    path.to_str().context("the lab's folder has a name that is not UTF-8")
}
