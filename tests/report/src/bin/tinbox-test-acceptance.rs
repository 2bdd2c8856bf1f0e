//! Writes the table of acceptance rows of a whole test run, and compares the committed page with
//! it. Ends with 1 if they differ. With `UPDATE` in the environment, it rewrites the page instead.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::Parser;
use report::Run;
use report::acceptance::Acceptance;

const ROWS: &str = "tests/report/rows.toml";
const PAGE: &str = "docs/acceptance.md";
/// Number of different lines that are printed.
const PRINTED: usize = 20;

/// Write the table of acceptance rows of a test run, and compare docs/acceptance.md with it.
#[derive(Debug, Parser)]
struct Arguments {
    /// The JUnit report of a whole run, by cargo-nextest.
    #[arg(long)]
    junit: PathBuf,
    /// File for the table of this run.
    #[arg(long)]
    out: PathBuf,
}

fn main() -> Result<ExitCode> {
    let Arguments { junit, out } = Arguments::parse();
    let run = Run::read(&fs::read_to_string(&junit).context("cannot read the JUnit report")?)?;
    let rows = fs::read_to_string(ROWS).with_context(|| format!("cannot read {ROWS}"))?;
    let acceptance = Acceptance::read(&rows)?;
    for (id, test) in acceptance.absent(&run) {
        println!("note: {id} names {test}, which did not run");
    }
    let page = acceptance.page(&run);
    fs::write(&out, &page).with_context(|| format!("cannot write {}", out.display()))?;
    if std::env::var_os("UPDATE").is_some() {
        fs::write(PAGE, &page).with_context(|| format!("cannot write {PAGE}"))?;
    }
    let committed = fs::read_to_string(PAGE).unwrap_or_default();
    if committed == page {
        return Ok(ExitCode::SUCCESS);
    }
    println!("error: {PAGE} is not the table of this run; lines of this run that it lacks:");
    let known: BTreeSet<&str> = committed.lines().collect();
    for line in page.lines().filter(|line| !known.contains(line)).take(PRINTED) {
        println!("  {line}");
    }
    println!("hint: cp {} {PAGE}", out.display());
    Ok(ExitCode::FAILURE)
}
