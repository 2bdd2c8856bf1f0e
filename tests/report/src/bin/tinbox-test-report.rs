//! Prints the end of a test run: CPU time of each suite, flaky tests, vanished tests, and one count
//! as the last line. Ends with 1 when a test failed, was flaky for the third time, or when fewer
//! tests ran than the tree requires.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::Parser;
use report::ledger::{LIMIT, Ledger, RUNS};
use report::{Run, cpu};

/// Number of suites in the table of CPU time.
const SUITES: usize = 25;
/// Number of vanished tests that are named.
const NAMED: usize = 20;

/// Print the end of a test run.
#[derive(Debug, Parser)]
struct Arguments {
    /// The JUnit report of cargo-nextest.
    #[arg(long)]
    junit: PathBuf,
    /// The log of tinbox-test-runner.
    #[arg(long)]
    cpu: PathBuf,
    /// Passed and failed doc tests, as `cargo test` prints them.
    #[arg(long)]
    doc: PathBuf,
    /// File with the smallest number of tests of a whole run; without it the run was a part.
    #[arg(long)]
    count: Option<PathBuf>,
    /// Folder with files of earlier runs on this machine.
    #[arg(long)]
    history: PathBuf,
    /// The commit of this run.
    #[arg(long)]
    commit: String,
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let run = Run::read(&read(&arguments.junit)?)?;
    print_cpu(&fs::read_to_string(&arguments.cpu).unwrap_or_default());
    let (doc_passed, doc_failed) = doc_tests(&read(&arguments.doc)?);
    fs::create_dir_all(&arguments.history).context("cannot make the folder of earlier runs")?;
    if arguments.count.is_some() {
        print_vanished(&run, &arguments.history.join("tests"))?;
    }
    let too_often = print_flaky(&run, &arguments.history.join("flaky"), &arguments.commit)?;
    let (passed, failed) = (run.passed() + doc_passed, run.failed() + doc_failed);
    let too_few = match &arguments.count {
        Some(file) => is_too_few(passed + failed, file)?,
        None => false,
    };
    println!("{} flaky", run.flaky().len());
    println!("{} passed, {} failed", passed - too_often, failed + too_often);
    let is_good = failed + too_often == 0 && !too_few;
    Ok(ExitCode::from(u8::from(!is_good)))
}

/// Compares the number of tests with the minimum in a file, and prints a difference.
fn is_too_few(tests: usize, file: &Path) -> Result<bool> {
    let smallest: usize = read(file)?.trim().parse().context("expected a number")?;
    let name = file.display();
    if tests < smallest {
        println!("error: {tests} tests ran, {name} expects {smallest} or more");
        println!("hint: a commit that removes tests lowers the number in {name} and says why");
    } else if tests > smallest {
        println!("hint: {tests} tests ran, {name} says {smallest}: raise it");
    }
    Ok(tests < smallest)
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

fn print_cpu(log: &str) {
    let sums = cpu::sum(log);
    let all: u64 = sums.iter().map(|(_, spent)| spent.milliseconds).sum();
    for (suite, spent) in sums.iter().take(SUITES) {
        let seconds = spent.milliseconds / 1000;
        println!("suite {suite:<28} {seconds:>6} CPU s {:>6} tests", spent.tests);
    }
    println!("suite {:<28} {:>6} CPU s", "all", all / 1000);
}

/// Passed and failed doc tests: the sums of cargo's `test result:` lines.
fn doc_tests(text: &str) -> (usize, usize) {
    let mut sums = (0, 0);
    for line in text.lines().filter(|line| line.starts_with("test result:")) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let before = |word: &str| {
            let at = words.iter().position(|one| one.starts_with(word))?;
            words.get(at.checked_sub(1)?)?.parse::<usize>().ok()
        };
        sums.0 += before("passed").unwrap_or(0);
        sums.1 += before("failed").unwrap_or(0);
    }
    sums
}

/// Prints the tests of the last run that did not run now, and stores this run's names.
fn print_vanished(run: &Run, file: &Path) -> Result<()> {
    let now: BTreeSet<String> = run.cases.iter().map(report::Case::id).collect();
    let before = fs::read_to_string(file).unwrap_or_default();
    let vanished: Vec<&str> = before.lines().filter(|name| !now.contains(*name)).collect();
    for name in vanished.iter().take(NAMED) {
        println!("note: {name} ran before on this machine and did not run now");
    }
    if vanished.len() > NAMED {
        println!("note: and {} more", vanished.len() - NAMED);
    }
    let names: String = now.iter().map(|name| format!("{name}\n")).collect();
    fs::write(file, names).with_context(|| format!("cannot write {}", file.display()))
}

/// Prints and records the flaky tests; returns how many of them count as failed.
fn print_flaky(run: &Run, file: &Path, commit: &str) -> Result<usize> {
    let mut ledger = Ledger::read(&fs::read_to_string(file).unwrap_or_default());
    let flaky = run.flaky();
    ledger.add(commit, flaky.iter().map(|(case, _)| case.id()));
    let mut too_often = 0;
    for (case, failure) in flaky {
        let (id, times) = (case.id(), ledger.count(&case.id()));
        println!(
            "FLAKY {id}: passed at its retry; {times} of the last {RUNS} runs. It failed with:"
        );
        println!("{failure}");
        if times >= LIMIT {
            println!("error: {id} counts as failed: flaky {times} times in {RUNS} runs");
            too_often += 1;
        }
    }
    fs::write(file, ledger.text()).with_context(|| format!("cannot write {}", file.display()))?;
    Ok(too_often)
}
