//! SSH key of an owner, for commands on an installed machine.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use qemu::poll;

use crate::Lab;

/// User of the Debian image that may become root.
const USER: &str = "debian";
/// Options of ssh: the key of an installed machine is new, and a machine that does not answer is
/// asked again by the caller.
const OPTIONS: [&str; 5] = [
    "StrictHostKeyChecking=no",
    "UserKnownHostsFile=/dev/null",
    "BatchMode=yes",
    "LogLevel=ERROR",
    "ConnectTimeout=10",
];

/// A new key, whose files are removed together with the rack.
pub struct SshKey {
    path: PathBuf,
    public: String,
}

impl SshKey {
    /// Generates a key.
    ///
    /// # Errors
    /// ssh-keygen fails.
    pub fn generate(lab: &Lab) -> anyhow::Result<Self> {
        let path = lab.rack.work_dir().join("owner-key");
        let mut generate = Command::new("ssh-keygen");
        generate.args(["-q", "-t", "ed25519", "-N", "", "-C", "owner", "-f"]).arg(&path);
        ensure!(generate.status().context("cannot run ssh-keygen")?.success(), "ssh-keygen fails");
        let public = fs::read_to_string(path.with_extension("pub"));
        let public = public.context("cannot read the public key")?.trim().to_owned();
        Ok(Self { path, public })
    }

    /// The public key, as in `authorized_keys`.
    pub fn public(&self) -> &str {
        &self.public
    }

    /// Runs a shell command on a machine of the lab, by SSH from the box's namespace, as soon as
    /// the machine permits it. Returns its output.
    ///
    /// # Errors
    /// The command does not succeed in time.
    pub fn run(
        &self,
        lab: &Lab,
        address: &str,
        command: &str,
        within: Duration,
    ) -> anyhow::Result<String> {
        let mut last = String::new();
        let done = poll(&format!("ssh to {address}"), within, || {
            let mut ssh = lab.rack.box_command("ssh");
            ssh.arg("-i").arg(&self.path).args(OPTIONS.iter().flat_map(|option| ["-o", option]));
            let output = ssh.arg(format!("{USER}@{address}")).arg(command).output().ok()?;
            last = String::from_utf8_lossy(&output.stderr).into_owned();
            let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            output.status.success().then_some(text)
        });
        done.with_context(|| format!("{command}: {last}"))
    }
}
