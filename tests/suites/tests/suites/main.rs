//! Test suites of other projects against our API.

mod apiextensions;
mod controller_runtime;
mod kube_rs;

use std::time::Instant;

use anyhow::{Result, ensure};
use suites::{LeftOut, Outcome, Suite};

/// Name of a machine-wide lock: suites measure time, so only one runs at a time.
const TURN: &str = "suites";

/// Runs the suite of one package against our server and compares its failures with the folder's
/// `left-out.md`.
fn holds(folder: &str, package: &str, run: impl Fn(&Suite) -> Result<Outcome>) -> Result<()> {
    let suite = Suite::build(folder, package)?;
    let left_out = LeftOut::read(folder)?;
    let _turn = peers::turn(TURN)?;
    let begun = Instant::now();
    let outcome = run(&suite)?;
    let (passed, failed) = (outcome.passed.len(), outcome.failed.len());
    println!("{package}: {passed} passed, {failed} left out, {:.1?}", begun.elapsed());
    let problems = left_out.problems(package, &outcome);
    ensure!(problems.is_empty(), "{package}:\n{}", problems.join("\n\n"));
    Ok(())
}
