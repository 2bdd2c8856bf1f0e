//! Child processes of the harness: started by a thread that never ends, killed when the harness
//! ends.

use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{SyncSender, sync_channel};

use rustix::process::{Pid, Signal, getpid, getppid, set_parent_process_death_signal};

use crate::Error;

/// Maximum number of spawn requests in the queue of the starting thread; with a full queue the
/// caller waits.
const MAX_WAITING_SPAWNS: usize = 16;
/// Maximum bytes of a program's output in a message.
const MAX_MESSAGE: usize = 4000;

struct Birth {
    command: Command,
    reply: SyncSender<io::Result<Child>>,
}

/// Starts `command` in its own process group, to be killed when this process ends.
///
/// The kernel's parent-death signal follows the *thread* that forked, so all children are started
/// by one thread that lives as long as the process does.
pub fn spawn(mut command: Command) -> io::Result<Child> {
    static NURSERY: OnceLock<SyncSender<Birth>> = OnceLock::new();
    let nursery = NURSERY.get_or_init(|| {
        let (sender, receiver) = sync_channel::<Birth>(MAX_WAITING_SPAWNS);
        std::thread::spawn(move || {
            for mut birth in receiver {
                let born = birth.command.spawn();
                // The requester may have ended; its child then ends with this process.
                let _ = birth.reply.send(born);
            }
        });
        sender
    });
    command.process_group(0);
    die_with_parent(&mut command);
    let (reply, answer) = sync_channel(1);
    let gone = || io::Error::other("the thread that starts processes has ended");
    nursery.send(Birth { command, reply }).map_err(|_| gone())?;
    answer.recv().map_err(|_| gone())?
}

#[allow(unsafe_code)]
fn die_with_parent(command: &mut Command) {
    let parent: Pid = getpid();
    let hook = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // The parent may have died between fork and prctl: no signal would then reach the child.
        if getppid() != Some(parent) {
            return Err(io::Error::from(io::ErrorKind::BrokenPipe));
        }
        Ok(())
    };
    // SAFETY: between fork and exec the hook makes two system calls (prctl, getppid) and builds an
    // `io::Error` from a plain code; it neither allocates nor takes a lock.
    unsafe {
        command.pre_exec(hook);
    }
}

/// Runs `command` to its end with `input` on standard input; returns its standard output.
pub fn run(mut command: Command, input: &str) -> Result<String, Error> {
    let words = describe(&command);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let failed = || Error::io(format!("run `{words}`"));
    let mut child = spawn(command).map_err(failed())?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that ends without reading its input reports that by its exit status.
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child.wait_with_output().map_err(failed())?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(text);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = if said.trim().is_empty() { text } else { said.into_owned() };
    let said: String = said.trim().chars().take(MAX_MESSAGE).collect();
    Err(Error::Command { command: words, outcome: format!("{}: {said}", output.status) })
}

/// Program and arguments as one line. Never the environment, which may contain passwords.
pub fn describe(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// The end of a log file, for an error message; empty when there is no file.
pub fn tail(path: &std::path::Path) -> String {
    let mut text = Vec::new();
    if let Ok(mut file) = std::fs::File::open(path) {
        let _ = file.read_to_end(&mut text);
    }
    let start = text.len().saturating_sub(MAX_MESSAGE);
    String::from_utf8_lossy(text.get(start..).unwrap_or_default()).trim().to_owned()
}

/// Kills and reaps a child; a child that has ended already is not an error.
pub fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}
