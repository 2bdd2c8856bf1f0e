//! A stock server as a child process that ends with this process.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::poll;

/// Maximum number of requests in the queue of the starting thread; with a full queue the caller
/// waits.
const MAX_WAITING: usize = 16;
/// Number of log lines that an error shows.
const LAST_WORDS: usize = 15;

/// A running child process, killed when dropped, and by the kernel when this process ends.
pub struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts `program` with standard output and standard error appended to the file `log`.
    ///
    /// # Errors
    /// The program cannot be started, or the log cannot be written.
    pub fn start(program: &Path, arguments: &[String], log: &Path) -> Result<Self> {
        let output = File::options().create(true).append(true).open(log);
        let output = output.with_context(|| format!("cannot write {}", log.display()))?;
        // setpriv execs the program: the process ID is the program's own.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]).arg(program).args(arguments);
        command.stdin(Stdio::null()).stderr(output.try_clone()?).stdout(output);
        let child = spawn(command).with_context(|| format!("cannot run {}", program.display()))?;
        Ok(Self { child, log: log.to_owned() })
    }

    /// Process ID of the program.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Kills the program with SIGKILL, and waits until it has ended.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Polls a condition until it holds.
    ///
    /// # Errors
    /// The program ends first, or the condition does not hold in time; the error contains the end
    /// of the log.
    pub fn wait_until(
        &mut self,
        what: &str,
        limit: Duration,
        mut holds: impl FnMut() -> bool,
    ) -> Result<()> {
        let mut ended = None;
        let waited = poll(what, limit, || {
            ended = self.child.try_wait().ok().flatten();
            ended.is_some() || holds()
        });
        let problem = match (waited, ended) {
            (Ok(()), None) => return Ok(()),
            (_, Some(status)) => format!("{what}: the process ended with {status}"),
            (Err(error), None) => error.to_string(),
        };
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        bail!("{problem}\n{}", lines[lines.len().saturating_sub(LAST_WORDS)..].join("\n"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

struct Birth {
    command: Command,
    reply: SyncSender<io::Result<Child>>,
}

/// Starts a command on one thread that lives as long as the process: the parent-death signal
/// follows the thread that forked.
fn spawn(command: Command) -> io::Result<Child> {
    static NURSERY: OnceLock<SyncSender<Birth>> = OnceLock::new();
    let nursery = NURSERY.get_or_init(|| {
        let (sender, receiver) = sync_channel::<Birth>(MAX_WAITING);
        std::thread::spawn(move || {
            for mut birth in receiver {
                // The requester may have ended; the child then ends with this process.
                let _ = birth.reply.send(birth.command.spawn());
            }
        });
        sender
    });
    let gone = || io::Error::other("the thread that starts processes has ended");
    let (reply, answer) = sync_channel(1);
    nursery.send(Birth { command, reply }).map_err(|_| gone())?;
    answer.recv().map_err(|_| gone())?
}
