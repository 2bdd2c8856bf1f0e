//! A suite compiled from what its project publishes, and its run.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use crate::{Inert, Outcome};

/// Longest run of one suite of Go's.
const LIMIT: Duration = Duration::from_secs(300);
/// Tests that run at once where each has a server of its own: most of them wait.
const AT_ONCE: usize = 4;
/// Lines that an error shows of what a suite said last.
const LAST_WORDS: usize = 40;

/// A compiled suite.
pub struct Suite {
    program: PathBuf,
    /// Where the files lie that its tests read.
    folder: PathBuf,
}

impl Suite {
    /// The suite of `package`, as `build.sh` in `folder` below `tests/suites` makes it where it is
    /// not in the cache.
    ///
    /// # Errors
    /// It cannot be built.
    pub fn build(folder: &str, package: &str) -> Result<Self> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder).join("build.sh");
        let mut lines = peers::printed(&script, &[package])?.into_iter();
        let program = lines.next().context("build.sh names the program")?;
        Ok(Self { folder: lines.next().unwrap_or_else(std::env::temp_dir), program })
    }

    /// Runs the tests that the suite has with Ginkgo.
    ///
    /// # Errors
    /// It ended without a report; with its last words.
    pub fn ginkgo(&self) -> Result<Outcome> {
        let server = Inert::start()?;
        let report = server.folder().join("report.xml");
        let limit = format!("-test.timeout={}s", LIMIT.as_secs());
        let junit = format!("-ginkgo.junit-report={}", report.display());
        let words = self.run(&server, &[&limit, &junit])?;
        let xml = std::fs::read_to_string(&report);
        let xml = xml.with_context(|| format!("no report: {}", last(&words)))?;
        some(Outcome::of_ginkgo(&xml), &words)
    }

    /// Runs those tests of a crate that it ignores without a cluster.
    ///
    /// # Errors
    /// None ran; with its last words.
    pub fn ignored(&self) -> Result<Outcome> {
        let words = self.run(&Inert::start()?, &["--ignored"])?;
        some(Outcome::of_rust(&words), &words)
    }

    /// Runs a suite of Go's whose tests each want a server of their own.
    ///
    /// # Errors
    /// It has no test, or one ended without saying how; with its last words.
    pub fn each(&self) -> Result<Outcome> {
        let names = self.command().args(["-test.list", "."]).output();
        let names = names.with_context(|| format!("cannot run {}", self.program.display()))?.stdout;
        let names = String::from_utf8(names).context("the suite printed no text")?;
        let waiting = Mutex::new(names.lines().filter(|name| name.starts_with("Test")));
        let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
        let work = || {
            let mut outcome = Outcome::default();
            while let Some(name) = next() {
                outcome.merge(self.one(name)?);
            }
            anyhow::Ok(outcome)
        };
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(work)).collect();
            let mut whole = Outcome::default();
            for worker in workers {
                whole.merge(worker.join().ok().context("a worker panicked")??);
            }
            some(whole, &names)
        })
    }

    fn one(&self, name: &str) -> Result<Outcome> {
        let limit = format!("-test.timeout={}s", LIMIT.as_secs());
        let pattern = format!("^{name}$");
        let server = Inert::start()?;
        let words = self.run(&server, &[&limit, "-test.v", "-test.run", &pattern])?;
        some(Outcome::of_go(&words), &words)
    }

    /// The program.
    pub fn program(&self) -> &Path {
        &self.program
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.current_dir(&self.folder).stdin(Stdio::null());
        command
    }

    fn run(&self, server: &Inert, arguments: &[&str]) -> Result<String> {
        let output = self
            .command()
            .env("KUBECONFIG", server.kubeconfig())
            .env("USE_EXISTING_CLUSTER", "true")
            .args(arguments)
            .output()
            .with_context(|| format!("cannot run {}", self.program.display()))?;
        let text = [output.stdout, output.stderr].concat();
        Ok(String::from_utf8_lossy(&text).into_owned())
    }
}

/// An outcome of at least one test.
fn some(outcome: Outcome, words: &str) -> Result<Outcome> {
    ensure!(outcome.passed.len() + outcome.failed.len() > 0, "no test ran: {}", last(words));
    Ok(outcome)
}

fn last(words: &str) -> String {
    let lines: Vec<&str> = words.lines().collect();
    lines[lines.len().saturating_sub(LAST_WORDS)..].join("\n")
}
