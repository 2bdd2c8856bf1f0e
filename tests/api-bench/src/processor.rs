//! Processor time of processes, as Linux counts it.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

/// Processor time of one unit in `/proc/PID/stat` (`USER_HZ` of Linux).
const TICKS_PER_SECOND: f64 = 100.0;

/// Returns the share of one core that a process uses during `time`, in percent.
///
/// # Errors
/// The process does not exist.
pub async fn cpu_percent(process: u32, time: Duration) -> Result<f64> {
    let (begin, before) = (Instant::now(), ticks(process)?);
    tokio::time::sleep(time).await;
    let used = (ticks(process)? - before) / TICKS_PER_SECOND;
    Ok(used / begin.elapsed().as_secs_f64() * 100.0)
}

/// Returns the processor time of a process in ticks: fields 14 and 15 of `/proc/PID/stat`, see
/// proc(5).
fn ticks(process: u32) -> Result<f64> {
    let path = format!("/proc/{process}/stat");
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    // The name in parentheses may have blanks.
    let (_, fields) = text.rsplit_once(')').context("a stat file has a name")?;
    let field = |at: usize| fields.split_whitespace().nth(at)?.parse::<f64>().ok();
    field(11).zip(field(12)).map(|(user, system)| user + system).context("no times")
}
