//! Runs the container's program in its sandbox.

use std::ffi::CString;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use imaging::Meter;
use imaging::children::ChildGuard;
use imaging::output::{LastLines, log_lines};
use rustix::fs::OFlags;
use tokio::process::Child;
use tokio::runtime::Handle;

use super::config::Process;
use super::mounts::{mount_all, place, within};
use super::sandbox::Sandbox;
use super::user::{Account, FILE_BYTES};
use super::{Container, pull};
use crate::Error;
use crate::sys::{SandboxProcess, enter_sandbox, own_processes};

impl Container {
    /// Pulls the image and runs its program. Returns a summary for the operator.
    pub(super) async fn to_its_end(&self, meter: &Arc<Meter>) -> Result<String, Error> {
        let pull::Image { config, layers } = self.look_up(meter).await?;
        let process = Process::merge(&config, &self.command, &self.environment);
        let process = process.map_err(|why| self.bad(why))?;
        let sandbox = Sandbox::open().await?;
        let (unpacked, fetched) =
            self.unpack(&layers, sandbox.root(), sandbox.bytes, meter).await?;
        let ended = self.live(process, &sandbox, meter).await;
        sandbox.close().await;
        ended?;
        Ok(format!(
            "ran {} ({} in {} files, {} fetched)",
            self.image,
            stdx::bytes(unpacked.bytes),
            unpacked.entries,
            stdx::bytes(fetched),
        ))
    }

    async fn live(
        &self,
        process: Process,
        sandbox: &Sandbox,
        meter: &Arc<Meter>,
    ) -> Result<(), Error> {
        meter.say(format!("running {}", self.image));
        let _ours = ChildGuard::begin();
        let (this, runtime) = (self.clone(), Handle::current());
        let started = sandbox.within(move |root| this.start(process, root, &runtime));
        let mut child = started.await?;
        let last = LastLines::default();
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let name = self.image_name.as_str();
        let output_ends = async {
            tokio::join!(log_lines(out, name, meter, &last), log_lines(err, name, meter, &last))
        };
        let status = if self.own_processes {
            // The pipes close with the program: it is the first process of its namespace, and none
            // outlives it.
            output_ends.await;
            child.wait().await
        } else {
            // Processes that the program leaves behind may keep its pipes open; they are killed
            // with the container.
            let mut output_ends = std::pin::pin!(output_ends);
            tokio::select! {
                status = child.wait() => {
                    // All output from before the program's end is already in the pipe.
                    let _ = tokio::time::timeout(super::REST, &mut output_ends).await;
                    status
                }
                _ = &mut output_ends => child.wait().await,
            }
        };
        let status = status.map_err(Error::io(format!("wait for {}", self.image)))?;
        if status.success() {
            return Ok(());
        }
        let output = last.joined();
        Err(imaging::Error::Program { program: self.image_name.clone(), status, output }.into())
    }

    /// Starts the program. Must run on the container's thread.
    fn start(&self, process: Process, root: &File, runtime: &Handle) -> Result<Child, Error> {
        let account =
            Account::find(&process.user, &text(root, "etc/passwd"), &text(root, "etc/group"));
        let account = account.map_err(|why| self.bad(why))?;
        let mount_proc = mount_all(root, &self.volumes, self.own_processes)?;
        place(root, &process.folder, true)
            .map_err(Error::io(format!("give the container its {}", process.folder)))?;
        let folder = CString::new(process.folder).map_err(|error| self.bad(error.to_string()))?;
        let Some((program, arguments)) = process.command.split_first() else {
            return Err(self.bad("it has no program to run"));
        };
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env_clear()
            .env("HOME", &account.home)
            .envs(process.environment)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let root = root.try_clone().map_err(Error::io("open the container's root again"))?;
        let Account { uid, gid, groups, .. } = account;
        enter_sandbox(&mut command, SandboxProcess { root, mount_proc, folder, uid, gid, groups });
        own_processes(self.own_processes)
            .map_err(Error::io("make namespaces for the container"))?;
        let _runtime = runtime.enter();
        let mut command = tokio::process::Command::from(command);
        let started = command.kill_on_drop(true).spawn();
        started.map_err(Error::io(format!("start {program} in {}", self.image)))
    }
}

/// Returns the text of a file in the container, at most [`FILE_BYTES`]; empty if missing.
fn text(root: &File, path: &str) -> String {
    let mut bytes = Vec::new();
    if let Ok(file) = within(root, Path::new(path), OFlags::RDONLY | OFlags::NONBLOCK) {
        // An error ends the text at the last readable byte.
        let _ = file.take(FILE_BYTES).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
