//! A program with a serial console on its standard streams: a machine without QEMU.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use crate::{Error, Serial, children, poll};

/// A running program with its console, killed when dropped.
#[derive(Debug)]
pub struct ConsoleProcess {
    child: Child,
    serial: Arc<Serial>,
}

impl ConsoleProcess {
    /// Starts `command`, for instance one from [`Host::command`](crate::Host::command). The
    /// program's standard output is also written to `log`. The program is killed when the harness
    /// ends.
    ///
    /// # Errors
    /// The log cannot be created, or the program does not start.
    pub fn start(mut command: Command, log: &Path) -> Result<Self, Error> {
        let file = File::create(log).map_err(Error::path("create", log))?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let words = children::describe(&command);
        let mut child = children::spawn(command).map_err(Error::io(format!("start `{words}`")))?;
        let serial = Arc::new(Serial::new(0, file));
        let attached = serial.attach(&mut child);
        let process = Self { child, serial };
        attached.map(|()| process)
    }

    /// Console on the program's standard output and input.
    pub fn serial(&self) -> &Serial {
        &self.serial
    }

    /// Process ID of the program.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// True while the program runs.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits until the program has ended, and returns its exit status.
    ///
    /// # Errors
    /// The program has not ended after `within`.
    pub fn wait(&mut self, within: Duration) -> Result<ExitStatus, Error> {
        poll("the program to end", within, || self.child.try_wait().ok().flatten())
    }
}

impl Drop for ConsoleProcess {
    fn drop(&mut self) {
        children::end(&mut self.child);
    }
}
