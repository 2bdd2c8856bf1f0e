//! Runs one test for cargo-nextest and records the CPU time of everything that the test started:
//! `tinbox-test-runner PROGRAM ARGUMENT…`, with `TINBOX_CPU_LOG` naming the log.
//!
//! A process that outlives its parent becomes a child of this program (`PR_SET_CHILD_SUBREAPER`),
//! so that emulated machines are counted too. A process that still runs when the test ends is
//! neither waited for nor counted.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitCode, ExitStatus};

use anyhow::{Context as _, Result};
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper, wait};
use tokio::signal::unix::{SignalKind, signal};

/// The variable with the path of the log.
const LOG: &str = "TINBOX_CPU_LOG";
/// cargo-nextest's variable with the name of the test binary.
const SUITE: &str = "NEXTEST_BINARY_ID";
/// Clock ticks a second in /proc, proc(5); the kernel's ABI has 100 on x86 and ARM.
const USER_HZ: u64 = 100;

fn main() -> Result<ExitCode> {
    let mut words = std::env::args_os().skip(1);
    let is_test = std::env::args_os().all(|word| word != "--list");
    let program = words.next().context("usage: tinbox-test-runner PROGRAM ARGUMENT…")?;
    let status = run(&program, words)?;
    let names = std::env::var_os(LOG).zip(std::env::var(SUITE).ok());
    if let Some((log, suite)) = names.filter(|_| is_test) {
        let line = report::cpu::line(&suite, cpu_milliseconds()?);
        let mut log = OpenOptions::new().create(true).append(true).open(log)?;
        log.write_all(line.as_bytes())?;
    }
    if let Some(signal) = status.signal().and_then(Signal::from_named_raw) {
        kill_process(getpid(), signal)?;
    }
    Ok(ExitCode::from(u8::try_from(status.code().unwrap_or(1)).unwrap_or(1)))
}

/// Runs the program to its end and reaps its descendants on the way.
fn run(program: &OsString, arguments: impl Iterator<Item = OsString>) -> Result<ExitStatus> {
    // cargo-nextest ends a test by a signal to the whole group. The test handles the signal, and
    // this process stays until the test has ended.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let _runtime = runtime.enter();
    let _handlers =
        [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()].map(signal);
    set_child_subreaper(Some(getpid()))?;
    let child = Command::new(program)
        .args(arguments)
        .spawn()
        .with_context(|| format!("cannot run {}", program.display()))?;
    let child = Pid::from_child(&child);
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == child => {
                while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
                return Ok(ExitStatus::from_raw(status.as_raw()));
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error).context("cannot wait for the test"),
        }
    }
}

/// CPU time of all reaped descendants: fields 16 and 17 of /proc/self/stat, proc(5).
fn cpu_milliseconds() -> Result<u64> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    // The command's name ends with the last parenthesis; field 3 is the first after it.
    let fields = stat.rsplit_once(')').context("/proc/self/stat has no name")?.1;
    let ticks: u64 =
        fields.split_whitespace().skip(13).take(2).filter_map(|n| n.parse::<u64>().ok()).sum();
    Ok(ticks * 1000 / USER_HZ)
}
