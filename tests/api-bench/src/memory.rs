//! Memory of processes, as Linux counts it.

use std::fs;

use anyhow::{Context as _, Result};

/// Returns the resident memory of the processes together, in MiB.
///
/// # Errors
/// A process does not exist.
pub fn rss_mib(processes: &[u32]) -> Result<f64> {
    let mut kib = 0.0;
    for process in processes {
        let path = format!("/proc/{process}/status");
        let status = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let number = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
        kib += number.with_context(|| format!("{path} has no VmRSS"))?;
    }
    Ok(kib / 1024.0)
}
