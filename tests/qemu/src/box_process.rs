//! A program under test inside the box's namespace: started, killed and started again.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::namespace::Namespace;
use crate::{Error, children, poll, proc};

/// Program to run in the box's namespace, with arguments, environment and log file.
#[derive(Debug, Clone)]
pub struct BoxProgram {
    program: OsString,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    log: PathBuf,
}

impl BoxProgram {
    /// A program whose standard output and standard error are appended to `log`.
    pub fn new(program: impl AsRef<OsStr>, log: impl Into<PathBuf>) -> Self {
        Self {
            program: program.as_ref().to_owned(),
            arguments: Vec::new(),
            environment: Vec::new(),
            log: log.into(),
        }
    }

    /// Adds arguments. All users of the machine can read them: no secrets.
    #[must_use]
    pub fn args<A: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments.extend(arguments.into_iter().map(|argument| argument.as_ref().to_owned()));
        self
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.environment.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }
}

/// A running [`BoxProgram`], killed when dropped.
#[derive(Debug)]
pub struct BoxProcess {
    program: BoxProgram,
    namespace: Namespace,
    child: Child,
}

impl BoxProcess {
    pub(crate) fn start(program: BoxProgram, namespace: Namespace) -> Result<Self, Error> {
        let child = spawn(&program, &namespace)?;
        Ok(Self { program, namespace, child })
    }

    /// Process ID of the program.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Log file with the program's output.
    pub fn log(&self) -> &Path {
        &self.program.log
    }

    /// True while the program runs.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Resident memory in bytes.
    pub fn rss(&self) -> Option<u64> {
        proc::memory(self.pid(), "VmRSS")
    }

    /// Resident anonymous memory in bytes, without pages of files.
    pub fn anonymous(&self) -> Option<u64> {
        proc::memory(self.pid(), "RssAnon")
    }

    /// Peak resident memory in bytes.
    pub fn peak_rss(&self) -> Option<u64> {
        proc::memory(self.pid(), "VmHWM")
    }

    /// User plus system CPU time.
    pub fn cpu(&self) -> Option<Duration> {
        proc::cpu(self.pid())
    }

    /// Kills the program with SIGKILL, and waits until it has ended.
    pub fn kill9(&mut self) {
        children::end(&mut self.child);
    }

    /// Sends SIGTERM to the program, waits until it has ended, and returns its exit status.
    ///
    /// # Errors
    /// The program has not ended after `within`.
    pub fn terminate(&mut self, within: Duration) -> Result<ExitStatus, Error> {
        if let Some(pid) = i32::try_from(self.pid()).ok().and_then(Pid::from_raw)
            && self.is_running()
        {
            // The program may end by itself at this moment; the wait below then succeeds.
            let _ = kill_process(pid, Signal::TERM);
        }
        self.wait(within)
    }

    /// Waits until the program has ended, and returns its exit status.
    ///
    /// # Errors
    /// The program has not ended after `within`.
    pub fn wait(&mut self, within: Duration) -> Result<ExitStatus, Error> {
        let what = format!("{} to end", self.program.program.to_string_lossy());
        poll(&what, within, || self.child.try_wait().ok().flatten())
    }

    /// Kills the process if it runs, and starts it again with the same arguments.
    ///
    /// # Errors
    /// The program does not start.
    pub fn restart(&mut self) -> Result<(), Error> {
        self.kill9();
        self.child = spawn(&self.program, &self.namespace)?;
        Ok(())
    }
}

impl Drop for BoxProcess {
    fn drop(&mut self) {
        self.kill9();
    }
}

fn spawn(program: &BoxProgram, namespace: &Namespace) -> Result<Child, Error> {
    let log = &program.log;
    let output = File::options().create(true).append(true).open(log);
    let output = output.map_err(Error::path("open", log))?;
    let errors = output.try_clone().map_err(Error::path("clone", log))?;
    let mut command = namespace.command(&program.program);
    command.args(&program.arguments).envs(program.environment.iter().cloned());
    command.stdin(Stdio::null()).stdout(output).stderr(errors);
    let words = children::describe(&command);
    children::spawn(command).map_err(Error::io(format!("start `{words}`")))
}
