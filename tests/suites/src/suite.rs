//! A suite compiled from what its project publishes, and its run.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use crate::{Inert, Outcome};

/// Longest run of one suite of Ginkgo's.
const LIMIT: Duration = Duration::from_secs(300);
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
    pub fn ginkgo(&self, server: &Inert) -> Result<Outcome> {
        let report = server.folder().join("report.xml");
        let limit = format!("-test.timeout={}s", LIMIT.as_secs());
        let junit = format!("-ginkgo.junit-report={}", report.display());
        let words = self.run(server, &[&limit, &junit])?;
        let xml = std::fs::read_to_string(&report);
        let xml = xml.with_context(|| format!("no report: {}", last(&words)))?;
        some(Outcome::of_ginkgo(&xml), &words)
    }

    /// Runs those tests of a crate that it ignores without a cluster.
    ///
    /// # Errors
    /// None ran; with its last words.
    pub fn ignored(&self, server: &Inert) -> Result<Outcome> {
        let words = self.run(server, &["--ignored"])?;
        some(Outcome::of_rust(&words), &words)
    }

    /// The program.
    pub fn program(&self) -> &Path {
        &self.program
    }

    fn run(&self, server: &Inert, arguments: &[&str]) -> Result<String> {
        let output = Command::new(&self.program)
            .current_dir(&self.folder)
            .env("KUBECONFIG", server.kubeconfig())
            .env("USE_EXISTING_CLUSTER", "true")
            .args(arguments)
            .stdin(Stdio::null())
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
