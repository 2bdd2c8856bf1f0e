//! Duration and cost of a command with all its processes, by the kernel's counts that GNU time
//! reads (`getrusage` of the children).

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};

/// GNU time; the shell's keyword `time` does not report memory.
const TIME: &str = "/usr/bin/time";

/// Cost of one run.
#[derive(Debug, Clone, Copy, Default)]
pub struct Took {
    pub seconds: f64,
    pub cpu_seconds: f64,
    /// Peak memory of the run's largest process, in MiB.
    pub peak_mib: f64,
}

/// Runs a line of bash that fails when any part of a pipe fails.
///
/// # Errors
/// The line fails; the error has the end of its output.
pub fn timed(line: &str, scratch: &Path) -> Result<Took> {
    let (counts, words) = (scratch.join("counts"), scratch.join("words"));
    let log = fs::File::create(&words)?;
    let mut command = Command::new(TIME);
    command.args(["--quiet", "--format", "%U %S %M", "--output"]).arg(&counts);
    command.args(["bash", "-c", &format!("set -euo pipefail; {line}")]);
    command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    let begun = Instant::now();
    let status = command.status().context("cannot run /usr/bin/time: install the package time")?;
    let seconds = begun.elapsed().as_secs_f64();
    let said = fs::read_to_string(&words).unwrap_or_default();
    ensure!(status.success(), "{line}: {status}: {}", said.trim());
    let counts = fs::read_to_string(&counts)?;
    let (cpu_seconds, peak_mib) =
        read(&counts).with_context(|| format!("GNU time said: {counts}"))?;
    Ok(Took { seconds, cpu_seconds, peak_mib })
}

/// Parses `user system KiB` in the last line.
fn read(counts: &str) -> Option<(f64, f64)> {
    let mut numbers = counts.lines().last()?.split(' ').map(|word| word.parse::<f64>().ok());
    let (user, system, kib) = (numbers.next()??, numbers.next()??, numbers.next()??);
    Some((user + system, kib / 1024.0))
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn reads_what_time_says() {
        assert_eq!(read("1.50 0.25 2048\n"), Some((1.75, 2.0)));
        assert_eq!(read("Command exited\n1.00 0.00 1024"), Some((1.0, 1.0)));
        assert_eq!(read(""), None);
    }
}
