//! A box that runs as a process on Linux: `tinboxd` on a host of a rack, with two NICs.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use firmware::owner::program;
use firmware::run;
use qemu::{BoxProcess, BoxProgram, Host, Rack, RackConfig, Segment, out_dir, poll};
use serde_json::Value;
use stdx::testing::PATIENCE;
use tempfile::TempDir;

use crate::{Agent, Terminal};

/// Address of the box on the machines' network, `eth1`.
const ADDRESS: &str = "10.77.0.1";
/// Configuration with one network, for pages that show no configuration.
pub const RESERVED: &str = "[network]\n\
    interface = \"eth1\"\n\
    address = \"10.77.0.1/24\"\n\
    mode = \"reserved\"\n";
/// Address and port of the publisher's server of images.
const PUBLISHER: &str = "10.77.0.250:8099";
/// MAC address of `nuc1` on all pages.
const NUC1: &str = "52:54:00:77:00:01";

/// A rack with a box that a person uses at its own terminal.
pub struct LinuxBox {
    host: Arc<Host>,
    process: Option<BoxProcess>,
    publisher: Option<BoxProcess>,
    rack: Rack,
    folder: TempDir,
}

impl LinuxBox {
    /// Builds the rack, without a running box.
    pub fn new(name: &str) -> Self {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let rack = Rack::build(RackConfig::new(&format!("doc-{name}"))).unwrap();
        // The rack's own box has the same address.
        rack.unplug_box().unwrap();
        let (far, near) = ([192, 168, 1, 5].into(), [10, 77, 0, 1].into());
        let host = rack.add_host("box", &[(Segment::Far, far), (Segment::Near, near)]);
        let host = Arc::new(host.unwrap());
        Self { host, process: None, publisher: None, rack, folder }
    }

    /// Builds the rack and starts the box with this `box.toml`.
    pub fn start(name: &str, settings: &str) -> Self {
        Self::new(name).with_settings(settings)
    }

    /// Starts the box with this `box.toml`, with the artifacts of the tree, and open for agents
    /// without a token.
    pub fn with_settings(mut self, settings: &str) -> Self {
        let agents = if settings.contains("[agents]") { "" } else { "[agents]\n" };
        let agents = if settings.contains("permissive") {
            String::new()
        } else {
            format!("{agents}permissive = true\n")
        };
        let boot = format!("[boot]\nartifacts = {:?}\n", out_dir().join("artifacts"));
        let settings = format!("{settings}{agents}{boot}");
        fs::write(self.folder().join("box.toml"), settings).unwrap();
        let state = self.state();
        self.serve(&format!("tinboxd --state {} --config box.toml", state.display()));
        self.wait_until_ready();
        self
    }

    /// Starts the box by this line of a page, in the box's folder.
    pub fn serve(&mut self, line: &str) {
        let log = self.rack.dir().join("tinboxd.log");
        let folder = self.folder().display().to_string();
        let programs = program("tinboxd").parent().unwrap().display().to_string();
        let line = format!("cd {folder}; PATH={programs}:$PATH; exec {line}");
        let line = BoxProgram::new("bash", log).args(["-c", &line]).env("NO_COLOR", "1");
        self.process = Some(self.host.spawn(line).unwrap());
    }

    /// Waits until the box has logged a text.
    pub fn wait_log(&self, text: &str) {
        let log = || fs::read_to_string(self.rack.dir().join("tinboxd.log")).unwrap_or_default();
        let is = || log().contains(text).then_some(());
        if let Err(error) = poll(&format!("the log to contain {text}"), PATIENCE, is) {
            panic!("{error}: {}", log());
        }
    }

    /// Waits until the API answers the administrator.
    pub fn wait_until_ready(&self) {
        let list = || {
            let mut tinbox = self.host.command(program("tinbox"));
            run(tinbox.arg("--kubeconfig").arg(self.kubeconfig()).args(["hardware", "list"])).ok()
        };
        if let Err(error) = poll("the API to answer", PATIENCE, list) {
            let log = fs::read_to_string(self.rack.dir().join("tinboxd.log")).unwrap_or_default();
            panic!("{error}: {log}");
        }
    }

    /// Folder of the person and of the box.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Folder of the box's state.
    pub fn state(&self) -> PathBuf {
        self.folder().join("state")
    }

    fn kubeconfig(&self) -> PathBuf {
        self.state().join("admin.kubeconfig")
    }

    /// A terminal on the box's host, with the administrator's kubeconfig.
    pub fn terminal(&self) -> Terminal {
        let mut terminal = Terminal::new(&self.host, self.folder());
        let kubeconfig = self.kubeconfig().display().to_string();
        terminal.set("TINBOX_KUBECONFIG", &kubeconfig);
        terminal.set("KUBECONFIG", &kubeconfig);
        terminal
    }

    /// Starts the agent of the machine `nuc1`.
    pub fn agent(&self) -> Agent {
        Agent::start(&self.host, &format!("{ADDRESS}:42113"), NUC1)
    }

    /// Adds a line to the box's token file, and starts the box again.
    pub fn add_token(&mut self, line: &str) {
        let file = self.state().join("tokens");
        let text = fs::read_to_string(&file).unwrap();
        fs::write(&file, format!("{text}{line}\n")).unwrap();
        self.process.as_mut().unwrap().restart().unwrap();
        self.wait_until_ready();
    }

    /// Runs `tinbox` as a part of the fixture; returns its output.
    pub fn tinbox(&self, arguments: &[&str]) -> String {
        let mut tinbox = self.host.command(program("tinbox"));
        tinbox.current_dir(self.folder()).arg("--kubeconfig").arg(self.kubeconfig());
        run(tinbox.args(arguments)).unwrap()
    }

    /// Serves the images of the tree from another machine of the rack.
    pub fn publish_images(&mut self) {
        let host = self.rack.add_host("publisher", &[(Segment::Near, [10, 77, 0, 250].into())]);
        let log = self.rack.dir().join("publisher.log");
        let server = BoxProgram::new(program("rack-httpd"), log)
            .args(["--dir".as_ref(), out_dir().join("artifacts/images").as_os_str()])
            .args(["--listen", PUBLISHER]);
        self.publisher = Some(host.unwrap().spawn(server).unwrap());
    }

    /// URL of a published image.
    pub fn published(&self, name: &str) -> String {
        format!("http://{PUBLISHER}/{name}")
    }

    /// Creates objects from YAML.
    pub fn push(&self, yaml: &str) {
        let file = self.folder().join("fixture.yaml");
        fs::write(&file, yaml).unwrap();
        self.tinbox(&["hardware", "push", "--file", "fixture.yaml"]);
        fs::remove_file(file).unwrap();
    }

    /// Creates the machine `nuc1`, without a BMC.
    pub fn push_nuc1(&self) {
        self.push(&format!(
            "apiVersion: tinkerbell.org/v1alpha1\n\
             kind: Hardware\n\
             metadata: {{name: nuc1}}\n\
             spec:\n\
             \x20 disks: [{{device: /dev/nvme0n1}}]\n\
             \x20 interfaces:\n\
             \x20 - netboot: {{allowPXE: true}}\n\
             \x20   dhcp:\n\
             \x20     mac: \"{NUC1}\"\n\
             \x20     ip: {{address: 10.77.0.11, netmask: 255.255.255.0}}\n"
        ));
    }

    /// Waits until a workflow is in a state.
    pub fn wait_workflow(&self, name: &str, state: &str) {
        let is = || {
            let object = self.tinbox(&["-o", "json", "workflow", "get", name]);
            let object: Value = serde_json::from_str(&object).unwrap();
            (object["status"]["state"] == state).then_some(())
        };
        poll(&format!("workflow {name} to be {state}"), PATIENCE, is).unwrap();
    }

    /// Removes the rack with its logs.
    pub fn succeed(self) {
        drop((self.process, self.publisher));
        self.rack.succeed();
    }
}
