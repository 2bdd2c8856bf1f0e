//! Finding programs, and waiting for conditions.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// Interval between two checks of a condition.
const LOOK: Duration = Duration::from_millis(20);

/// Returns the path of a program; the error names the Debian package that contains the program.
pub fn find(program: &str, package: &str) -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .map(|folder| folder.join(program))
        .find(|candidate| candidate.is_file())
        .with_context(|| format!("cannot find {program}: install the package {package}"))
}

/// Polls a condition until it holds; after `limit` returns an error that contains `what`, the name
/// of the condition.
pub fn poll(what: &str, limit: Duration, mut holds: impl FnMut() -> bool) -> Result<()> {
    let start = Instant::now();
    while !holds() {
        if start.elapsed() > limit {
            bail!("{what} did not come about within {} s", limit.as_secs());
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}
