//! A suite compiled from its project's published sources, and its run.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use crate::{Inert, Outcome};

/// Maximum duration of one Go suite.
const LIMIT: Duration = Duration::from_secs(300);
/// Number of parallel tests of a suite whose tests each have a server of their own: most of the
/// tests only wait.
const AT_ONCE: usize = 4;
/// Lines of a suite's last output that an error shows.
const LAST_WORDS: usize = 40;

/// A compiled suite with its data files.
pub struct Suite {
    program: PathBuf,
    /// Folder of the files that its tests read; the working folder of the run.
    folder: PathBuf,
}

impl Suite {
    /// Builds the suite of `package` with `build.sh` in `folder` below `tests/suites`, unless it is
    /// in the cache.
    ///
    /// # Errors
    /// The suite cannot be built.
    pub fn build(folder: &str, package: &str) -> Result<Self> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder).join("build.sh");
        let mut lines = peers::printed(&script, &[package])?.into_iter();
        let program = lines.next().context("build.sh names the program")?;
        Ok(Self { folder: lines.next().unwrap_or_else(std::env::temp_dir), program })
    }

    /// Runs the suite's Ginkgo tests.
    ///
    /// # Errors
    /// The suite ended without a report, or no test ran; the error contains the end of its output.
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

    /// Runs the tests of a Rust crate that are marked `ignore`, because they need a cluster.
    ///
    /// # Errors
    /// No test ran; the error contains the end of the output.
    pub fn ignored(&self) -> Result<Outcome> {
        let words = self.run(&Inert::start()?, &["--ignored"])?;
        some(Outcome::of_rust(&words), &words)
    }

    /// Runs a Go suite whose tests each need a server of their own.
    ///
    /// # Errors
    /// The suite has no test, or a test printed no result; the error contains the end of the
    /// output.
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

    /// Path of the compiled program.
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

/// Returns the outcome, or an error if it contains no test.
fn some(outcome: Outcome, words: &str) -> Result<Outcome> {
    ensure!(outcome.passed.len() + outcome.failed.len() > 0, "no test ran: {}", last(words));
    Ok(outcome)
}

fn last(words: &str) -> String {
    let lines: Vec<&str> = words.lines().collect();
    lines[lines.len().saturating_sub(LAST_WORDS)..].join("\n")
}
