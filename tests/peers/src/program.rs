//! Finding programs, and waiting for conditions.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// Interval between two checks of a condition.
const LOOK: Duration = Duration::from_millis(20);

/// The program's path, or an error that names the Debian package it comes in.
pub fn find(program: &str, package: &str) -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .map(|folder| folder.join(program))
        .find(|candidate| candidate.is_file())
        .with_context(|| format!("cannot find {program}: install the package {package}"))
}

/// Polls a condition until it holds; the error names the condition.
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
