//! kube-rs' own tests that need a cluster, and its reflector over many restarts of the box.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use peers::{Tinboxd, poll};
use stdx::testing::PATIENCE;
use suites::Suite;

const FOLDER: &str = "kube-rs";
/// Number of kills of the box during the watch.
const RESTARTS: usize = 50;

/// The program that writes and watches, killed when dropped. After a failed test it would otherwise
/// wait for the box forever and keep the test's output open.
struct Watching(Child);

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn holds(package: &str) -> Result<()> {
    crate::holds(FOLDER, package, Suite::ignored)
}

#[test]
fn client() -> Result<()> {
    holds("kube-client")
}

#[test]
fn runtime() -> Result<()> {
    holds("kube-runtime")
}

#[test]
fn facade() -> Result<()> {
    holds("kube")
}

/// A reflector loses no object and keeps no stale one while the box is killed repeatedly during
/// writes. No acknowledged write is lost.
#[test]
fn a_reflector_lives_through_restarts() -> Result<()> {
    let watching = Suite::build(FOLDER, "watching")?;
    let _turn = peers::turn(crate::TURN)?;
    let begun = Instant::now();
    let mut tinboxd = Tinboxd::start()?;
    let child = Command::new(watching.program())
        .env("KUBECONFIG", tinboxd.kubeconfig())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot run watching")?;
    let mut child = Watching(child);
    let output = BufReader::new(child.0.stdout.take().context("it has an output")?);
    let written = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&written);
    let reader = std::thread::spawn(move || {
        let mut last = String::new();
        for line in output.lines().map_while(Result::ok) {
            counter.fetch_add(1, Ordering::Relaxed);
            last = line;
        }
        last
    });
    for restart in 0..RESTARTS {
        // A different number of writes each time, so that kills fall before, in and after a write.
        await_writes(&written, 3 + restart * 7 % 11)
            .with_context(|| format!("after {restart} restarts, by {:?}", child.0.try_wait()))?;
        tinboxd.restart()?;
    }
    await_writes(&written, 1)?;
    drop(child.0.stdin.take());
    let status = child.0.wait().context("it ends")?;
    let last = reader.join().ok().context("its output ends")?;
    ensure!(status.success() && last.starts_with("same: "), "{status}: {last}");
    println!("{RESTARTS} restarts, {last}, {:.1?}", begun.elapsed());
    Ok(())
}

fn await_writes(written: &AtomicUsize, more: usize) -> Result<()> {
    let before = written.load(Ordering::Relaxed);
    let enough = || written.load(Ordering::Relaxed) >= before + more;
    poll("writes to be acknowledged", PATIENCE, enough)
}
