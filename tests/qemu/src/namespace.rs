//! Network namespaces: created, entered and identified by name.

use std::ffi::OsStr;
use std::fs::File;
use std::path::PathBuf;
use std::process::Command;

use rustix::fd::AsFd;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::{Error, children};

/// Folder of iproute2's named namespaces.
pub const NETNS_DIR: &str = "/run/netns";

/// A named network namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Namespace {
    name: String,
}

impl Namespace {
    pub fn new(name: String) -> Self {
        Self { name }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn path(&self) -> PathBuf {
        PathBuf::from(NETNS_DIR).join(&self.name)
    }

    pub fn exists(&self) -> bool {
        self.path().exists()
    }

    pub fn create(&self) -> Result<(), Error> {
        let mut command = Command::new("ip");
        command.args(["netns", "add", &self.name]);
        children::run(command, "").map(drop)
    }

    /// Runs iproute2 commands in the namespace, one per line.
    pub fn ip(&self, batch: &str) -> Result<(), Error> {
        let mut command = Command::new("ip");
        command.args(["-n", &self.name, "-batch", "-"]);
        children::run(command, batch).map(drop)
    }

    /// A command that runs `program` in the namespace. `ip` replaces itself with the program
    /// (exec), so the process ID of the command is the program's.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name]).arg(program);
        command
    }

    /// Runs `work` on a thread in the namespace: sockets that it opens belong to the namespace
    /// permanently.
    pub fn enter<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, Error> {
        let path = self.path();
        let file = File::open(&path).map_err(Error::path("open namespace", &path))?;
        std::thread::scope(|scope| {
            let inside = scope.spawn(|| {
                move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?;
                Ok::<T, rustix::io::Errno>(work())
            });
            match inside.join() {
                Ok(done) => done.map_err(|errno| Error::path("enter", &path)(errno.into())),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }
}
