//! Process 1 of the box. Process 1 mounts the volumes, starts and restarts the supervisor, collects
//! orphans, and shuts the machine down in order.
//!
//! A failure that an owner could repair never stops process 1. If the state volume cannot be
//! mounted, the supervisor still starts, in safe mode, and the box accepts no new owner. The
//! supervisor receives the reason, and shows it on the panel and the web page.

mod crash_counter;
pub mod pstore;
mod requested_reset;
pub mod reset;
mod restart_reason;
mod restarts;
mod state;
mod supervisor_monitor;
mod volumes;
mod watchdog;
mod zram;

use std::ffi::OsStr;
use std::os::fd::AsRawFd as _;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, kill_process_group, wait};
use rustix::system::RebootCommand;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{timeout, timeout_at};

use crate::Error;
pub use crate::disk::mount_points::{ARTIFACTS, BOOT, CACHE, STATE};
use crate::liveness::heartbeat::{Listener, PIPE};
use crate::privileged;
pub use crate::privileged::{is_first_process, set_host_name};
pub use crash_counter::CrashCounter;
pub(crate) use requested_reset::running;
use restart_reason::LastRestart;
pub use restart_reason::{last_panic, last_restart};
pub use restarts::{Next, Restarts};
pub use supervisor_monitor::SupervisorMonitor;
use volumes::MountResult;
pub use volumes::slot;
use watchdog::Watchdog;

/// Environment variable for the supervisor: failed operations of process 1, as sentences for the
/// owner.
pub const TROUBLE: &str = "TINBOX_TROUBLE";
/// Environment variable for the supervisor: reason why this start is in safe mode.
const SAFE_MODE: &str = "TINBOX_SAFE_MODE";
/// Environment variable for the supervisor, set if the state volume cannot be used.
const WITHOUT_STATE: &str = "TINBOX_WITHOUT_STATE";
/// Environment variable for the supervisor, set if no battery kept the time while the box was off.
pub const GUESSED_TIME: &str = "TINBOX_GUESSED_TIME";
/// Maximum time for the supervisor to stop.
const STOP: Duration = Duration::from_secs(15);
/// Maximum time for killed programs to end, after all data is on the disk.
const KILLED: Duration = Duration::from_secs(60);
/// Interval between two checks of killed programs.
const LOOK: Duration = Duration::from_millis(10);
/// Time for which the console shows the reason of a failed start before the machine restarts.
const READ_THE_REASON: Duration = Duration::from_secs(10);

/// Action at the end of process 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leave {
    /// Shuts down and restarts the machine.
    Restart,
    /// Shuts down and powers off the machine.
    PowerOff,
}

/// Returns the reason why this start is in safe mode (FR-1), as a phrase, or `None` in normal mode.
/// The value stays the same until the machine restarts.
pub fn safe_mode() -> Option<String> {
    std::env::var(SAFE_MODE).ok()
}

/// True if the state volume could not be mounted at this start. The box then does not know its
/// owner, and [`safe_mode`] returns the reason. The value stays the same until the machine
/// restarts.
pub fn without_state() -> bool {
    std::env::var_os(WITHOUT_STATE).is_some()
}

/// Requests a shutdown from process 1, by the signals that busybox init uses too.
///
/// # Errors
/// The process may not send signals to process 1.
pub fn ask(leave: Leave) -> Result<(), Error> {
    let signal = match leave {
        Leave::Restart => Signal::TERM,
        Leave::PowerOff => Signal::USR2,
    };
    kill_process(Pid::INIT, signal).map_err(Error::io("request the shutdown from process 1"))
}

/// Runs as process 1, with `program` and its arguments as the supervisor. Never returns, because
/// the kernel panics when process 1 ends. `keys` are file names in the box's folder of the state
/// volume. The first key protects the most data, and a factory reset destroys the keys before
/// anything else.
pub fn run(program: &OsStr, arguments: &[&str], keys: &[&str]) -> ! {
    volumes::console();
    let MountResult { mut trouble, time_is_a_guess, safe, lost } = volumes::mount(keys);
    let last = LastRestart::take();
    trouble.extend(last.sentences());
    let too_often = crash_counter::count(requested_reset::running(), last.reason());
    let without = lost.as_ref().map(|why| format!("its state volume cannot be used: {why}"));
    let safe = without.or(too_often).or(safe);
    for problem in &trouble {
        eprintln!("tinbox: {problem}");
    }
    let mut command = Command::new(program);
    command.args(arguments);
    last.set_environment(&mut command);
    if !trouble.is_empty() {
        command.env(TROUBLE, trouble.join("\n"));
    }
    if let Some(why) = &safe {
        eprintln!("tinbox: safe mode, because {why}");
        command.env(SAFE_MODE, why);
    }
    if lost.is_some() {
        command.env(WITHOUT_STATE, "1");
    }
    if time_is_a_guess {
        command.env(GUESSED_TIME, "1");
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let leave = match runtime {
        Ok(runtime) => match runtime.block_on(supervise(&mut command)) {
            Ok(leave) => leave,
            Err(error) => give_up(&stdx::chain(&error)),
        },
        Err(error) => give_up(&error.to_string()),
    };
    take_down(leave)
}

fn give_up(reason: &str) -> Leave {
    eprintln!("tinbox: cannot continue: {reason}; restarting");
    restart_reason::note(&format!("process 1 could not continue: {reason}"));
    std::thread::sleep(READ_THE_REASON);
    Leave::Restart
}

/// Starts and restarts the supervisor until a shutdown is requested.
async fn supervise(command: &mut Command) -> Result<Leave, Error> {
    let take = |kind| signal(kind).map_err(Error::io("receive signals"));
    let mut children = take(SignalKind::child())?;
    let mut asked = ShutdownSignals {
        terminate: take(SignalKind::terminate())?,
        interrupt: take(SignalKind::interrupt())?,
        power_off: take(SignalKind::user_defined2())?,
    };
    let mut restarts = Restarts::default();
    // The task stops with the runtime. The watchdog then restarts a machine that does not shut
    // down.
    tokio::spawn(feed());
    tokio::spawn(async {
        tokio::time::sleep(crash_counter::STEADY).await;
        crash_counter::clear();
    });
    loop {
        let (child, mut listener) = start(command)?;
        let status = tokio::select! {
            status = ended(&child, &mut children) => {
                eprintln!("tinbox: the supervisor ended: {status}");
                status
            }
            leave = asked.leave() => {
                stop(&child, &mut children).await;
                crash_counter::clear();
                return Ok(leave);
            }
            sentence = hangs(&mut listener) => {
                eprintln!("tinbox: {sentence}; restarting");
                restart_reason::note(&sentence);
                stop(&child, &mut children).await;
                return Ok(Leave::Restart);
            }
        };
        kill_all();
        match restarts.ended(Instant::now()) {
            Next::Restart => {
                restart_reason::note(&format!("the supervisor ended repeatedly: {status}"));
                return Ok(Leave::Restart);
            }
            Next::StartAfter(wait) => {
                if let Ok(leave) = timeout(wait, asked.leave()).await {
                    crash_counter::clear();
                    return Ok(leave);
                }
            }
        }
    }
}

/// Starts the supervisor, and returns it with the receiver of its heartbeats.
fn start(command: &mut Command) -> Result<(Child, Listener), Error> {
    let (listener, given) = Listener::new().map_err(Error::io("create a pipe"))?;
    command.env(PIPE, Listener::number(&given));
    let requests = privileged::serve().map_err(Error::io("receive requests of the supervisor"))?;
    command.env(privileged::SOCKET, requests.as_raw_fd().to_string());
    let child = command.spawn().map_err(Error::io("start the supervisor"))?;
    Ok((child, listener))
}

/// Waits until the supervisor has sent no heartbeat for too long, and returns the reason.
async fn hangs(listener: &mut Listener) -> String {
    let mut monitor = SupervisorMonitor::new(Instant::now());
    loop {
        match timeout_at(monitor.deadline().into(), listener.next()).await {
            Ok(message) => monitor.receive(message, Instant::now()),
            Err(_) => return monitor.sentence(Instant::now()),
        }
    }
}

/// Resets the timer of the hardware watchdog regularly, if the machine has one.
async fn feed() {
    let mut watchdog = match Watchdog::start() {
        Ok(Some(watchdog)) => watchdog,
        Ok(None) => return eprintln!("tinbox: this machine has no watchdog"),
        Err(error) => return eprintln!("tinbox: {}", stdx::chain(&error)),
    };
    loop {
        tokio::time::sleep(watchdog::FEED).await;
        watchdog.feed();
    }
}

/// Signals that request a shutdown.
struct ShutdownSignals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
    power_off: tokio::signal::unix::Signal,
}

impl ShutdownSignals {
    async fn leave(&mut self) -> Leave {
        tokio::select! {
            _ = self.terminate.recv() => Leave::Restart,
            // The kernel sends SIGINT for Control-Alt-Delete.
            _ = self.interrupt.recv() => Leave::Restart,
            _ = self.power_off.recv() => Leave::PowerOff,
        }
    }
}

/// Reaps every child that exits, until the supervisor exits. Returns the supervisor's exit status.
async fn ended(child: &Child, children: &mut tokio::signal::unix::Signal) -> String {
    let ours = Pid::from_child(child);
    loop {
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            if pid != ours {
                continue;
            }
            return match status.exit_status() {
                Some(code) => format!("exit status {code}"),
                None => format!("signal {}", status.terminating_signal().unwrap_or_default()),
            };
        }
        children.recv().await;
    }
}

async fn stop(child: &Child, children: &mut tokio::signal::unix::Signal) {
    // The signal fails if the supervisor has just ended.
    let _ = kill_process(Pid::from_child(child), Signal::TERM);
    if timeout(STOP, ended(child, children)).await.is_err() {
        eprintln!("tinbox: the supervisor did not stop in {} s", STOP.as_secs());
    }
}

/// Kills all other programs, also those that left the supervisor's process group. Does nothing
/// unless this process is process 1, because the signal would reach the programs of a whole host.
fn kill_all() {
    if is_first_process() {
        // Group 1 means all processes except process 1 (kill(2), pid -1). The signal fails if no
        // other process exists.
        let _ = kill_process_group(Pid::INIT, Signal::KILL);
    }
}

/// Reaps children until none is left, or returns false after `limit`. Process 1 is then the only
/// process, because orphans become its children. No file of another process is open, because the
/// kernel closes the files of all threads before a process can be reaped.
fn reap_all(limit: Duration) -> bool {
    let end = Instant::now() + limit;
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) => {}
            Ok(None) if Instant::now() < end => std::thread::sleep(LOOK),
            result => return result.is_err_and(|errno| errno == Errno::CHILD),
        }
    }
}

fn take_down(leave: Leave) -> ! {
    watchdog::feed_to_the_end();
    kill_all();
    // A killed program that waits for the disk ends only after the disk has its data.
    rustix::fs::sync();
    if !reap_all(KILLED) {
        eprintln!("tinbox: a killed program did not end in {} s", KILLED.as_secs());
    }
    volumes::unmount();
    let command = match leave {
        Leave::Restart => RebootCommand::Restart,
        Leave::PowerOff => RebootCommand::PowerOff,
    };
    loop {
        if let Err(errno) = rustix::system::reboot(command) {
            eprintln!("tinbox: cannot shut down the kernel: {errno}");
        }
        std::thread::sleep(READ_THE_REASON);
    }
}
