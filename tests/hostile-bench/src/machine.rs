//! A booting machine: BusyBox's DHCP client, curl in place of its firmware and loader, and the
//! product's agent, which installs a small disk.

use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use firmware::owner::program;
use firmware::run;
use qemu::{Host, Rack, Segment};
use serde_json::{Value, json};
use stdx::MacAddr;

use crate::lab::{BOX, OWNER};

/// File on the owner's machine that every machine installs.
pub const IMAGE: &str = "disk.raw";
pub const IMAGE_PORT: u16 = 8000;
/// A script of a DHCP client (`udhcpc -s`): sets the address, and prints the boot file.
const BOUND: &str = "#!/bin/sh\n\
    [ \"$1\" = bound ] || exit 0\n\
    ip address replace \"$ip/24\" dev \"$interface\"\n\
    echo \"boot file: $boot_file\"\n";
/// Maximum seconds of a download, as an argument of curl.
const FETCH_SECS: &str = "120";

/// One of the rack's machines.
#[derive(Debug)]
pub struct Machine {
    number: u8,
    host: Host,
    folder: PathBuf,
}

/// The agent of a booted machine, killed when dropped.
pub struct Agent(Child);

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Machine {
    /// Adds the machine to the rack, with its files below `folder`.
    ///
    /// # Errors
    /// The rack cannot add the machine.
    pub fn new(rack: &Rack, number: u8, folder: &Path) -> Result<Self> {
        let unused = [192, 0, 2, 1].into();
        let host = rack.add_host(&format!("m{number}"), &[(Segment::Near, unused)])?;
        let machine = Self { number, host, folder: folder.join(format!("m{number}")) };
        machine.host.set_mac("eth0", machine.mac())?;
        fs::create_dir(&machine.folder)?;
        fs::write(machine.script(), BOUND)?;
        fs::set_permissions(machine.script(), fs::Permissions::from_mode(0o755))?;
        Ok(machine)
    }

    fn script(&self) -> PathBuf {
        self.folder.join("bound")
    }

    fn disk(&self) -> PathBuf {
        self.folder.join("disk")
    }

    fn mac(&self) -> MacAddr {
        MacAddr([0x52, 0x54, 0, 0x77, 0x20, self.number])
    }

    fn address(&self) -> Ipv4Addr {
        Ipv4Addr::new(10, 77, 0, 50 + self.number)
    }

    /// Name of the machine's Hardware.
    pub fn name(&self) -> String {
        format!("machine-{}", self.number)
    }

    /// Name of the machine's Workflow in a round.
    pub fn workflow_name(&self, round: usize) -> String {
        format!("{}-{round}", self.name())
    }

    /// Hardware object of the machine.
    pub fn hardware(&self) -> Value {
        json!({
            "metadata": { "name": self.name() },
            "spec": {
                "disks": [{ "device": self.disk() }],
                "interfaces": [{
                    "netboot": { "allowPXE": true },
                    "dhcp": {
                        "mac": self.mac().to_string(),
                        "ip": { "address": self.address(), "netmask": "255.255.255.0" },
                        "arch": "x86_64",
                        "uefi": true,
                        "lease_time": 3600,
                    },
                }],
            },
        })
    }

    /// Workflow of the machine in a round.
    pub fn workflow(&self, round: usize) -> Value {
        json!({
            "metadata": {
                "name": self.workflow_name(round),
                "labels": { "round": round.to_string() },
            },
            "spec": {
                "templateRef": TEMPLATE,
                "hardwareRef": self.name(),
                "hardwareMap": { "device_1": self.mac().to_string() },
            },
        })
    }

    /// Boots the machine: address, loader, script, kernel and initramfs, agent.
    ///
    /// # Errors
    /// A step failed; the error has the output of the step's program.
    pub fn boot(&self) -> Result<Agent> {
        self.host.ip("address flush dev eth0\n")?;
        let loader = self.ask().context("DHCP")?;
        self.fetch(&format!("tftp://{BOX}/{loader}")).context("the loader")?;
        let script = format!("http://{BOX}:7080/ipxe/script/{}/auto.ipxe", self.mac());
        let script = self.fetch(&script).context("the script")?;
        let script = String::from_utf8_lossy(&script).into_owned();
        for what in ["kernel", "initrd"] {
            let url = after(&script, &format!("\n{what} ")).with_context(|| {
                format!("there is no {what} in the script: {}", script.replace('\n', " | "))
            })?;
            let bytes = self.fetch(url).context(what)?.len();
            ensure!(bytes > 1 << 20, "{what}: {bytes} bytes");
        }
        let token = after(&script, " tinbox.token=").context("no token in the script")?;
        fs::write(self.folder.join("token"), token)?;
        self.agent(after(&script, " tinbox.pin=").context("no pin in the script")?)
    }

    /// Runs DHCP and returns the boot file.
    fn ask(&self) -> Result<String> {
        let mut client = self.host.command("busybox");
        client.args(["udhcpc", "-i", "eth0", "-f", "-n", "-q", "-t", "30", "-T", "1", "-A", "1"]);
        client.args(["-V", "PXEClient:Arch:00007:UNDI:003016", "-x", "0x5d:0007"]);
        client.args(["-x", "0x5e:010310", "-O", "bootfile", "-s"]).arg(self.script());
        let said = run(&mut client)?;
        let file = said.lines().find_map(|line| line.strip_prefix("boot file: "));
        let file = file.filter(|file| !file.is_empty());
        Ok(file.with_context(|| format!("no file to boot: {said}"))?.to_owned())
    }

    fn fetch(&self, url: &str) -> Result<Vec<u8>> {
        let mut curl = self.host.command("curl");
        curl.args(["-sS", "--fail", "--max-time", FETCH_SECS, url]);
        let output = curl.stdin(Stdio::null()).output().context("cannot run curl")?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{url}: {}", said.trim());
        Ok(output.stdout)
    }

    fn agent(&self, pin: &str) -> Result<Agent> {
        fs::File::create(self.disk())?.set_len(16 << 20)?;
        let log = fs::File::create(self.folder.join("agent.log"))?;
        // The agent ends together with this process.
        let mut agent: Command = self.host.command("setpriv");
        agent.args(["--pdeathsig", "KILL"]).arg(program("tinbox-agent"));
        agent.args(["--grpc", &format!("{BOX}:42113"), "--id", &self.mac().to_string()]);
        agent.args(["--pin", pin]);
        agent.arg("--token-file").arg(self.folder.join("token")).arg("--allow-files");
        agent.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        Ok(Agent(agent.spawn().context("cannot start the agent")?))
    }
}

/// Name of the Template.
pub const TEMPLATE: &str = "small-disk";

/// The Template of all workflows.
pub fn template() -> Value {
    let data = json!({
        "version": "0.1",
        "name": TEMPLATE,
        "global_timeout": 600,
        "tasks": [{
            "name": "install",
            "worker": "{{.device_1}}",
            "actions": [{
                "name": "write-the-disk",
                "image": "quay.io/tinkerbell/actions/image2disk:latest",
                "timeout": 300,
                "environment": {
                    "IMG_URL": format!("http://{OWNER}:{IMAGE_PORT}/{IMAGE}"),
                    "DEST_DISK": "{{ index .Hardware.Disks 0 }}",
                },
            }],
        }],
    });
    json!({ "metadata": { "name": TEMPLATE }, "spec": { "data": data.to_string() } })
}

/// Returns the word that follows `mark`.
pub fn after<'a>(text: &'a str, mark: &str) -> Option<&'a str> {
    text.split_once(mark)?.1.split_whitespace().next()
}
