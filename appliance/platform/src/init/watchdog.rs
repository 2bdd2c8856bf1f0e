//! Hardware watchdog: a timer that restarts the machine unless process 1 resets it in time (WD-1).
//!
//! An opened watchdog cannot be stopped without a restart (`WATCHDOG_NOWAYOUT`).

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use crate::{Error, sys};

/// Timeout of the watchdog in seconds.
const PATIENCE_SECS: i32 = 60;
/// Interval between two resets of the timer.
pub const FEED: Duration = Duration::from_secs(15);
/// Maximum time of a shutdown during which the timer is reset, so that cached data can be written.
const DOWN_MAX: Duration = Duration::from_secs(900);
const SYS: &str = "/sys/class/watchdog";
/// Maximum number of watchdog devices to examine.
const DEVICES_MAX: usize = 16;

/// Running watchdog timer of the machine.
#[derive(Debug)]
pub struct Watchdog(File);

impl Watchdog {
    /// Starts the preferred watchdog, or returns `None` if the machine has no watchdog.
    ///
    /// # Errors
    /// The kernel cannot open the device.
    pub fn start() -> Result<Option<Self>, Error> {
        let Some(name) = best(devices(Path::new(SYS))) else { return Ok(None) };
        let path = Path::new("/dev").join(&name);
        let doing = format!("start the watchdog {}", path.display());
        let file = OpenOptions::new().write(true).open(path).map_err(Error::io(doing))?;
        let mut watchdog = Self(file);
        let set = sys::watchdog_timeout(&watchdog.0, PATIENCE_SECS);
        watchdog.feed();
        match set {
            Ok(seconds) => eprintln!("tinbox: {name} watches the machine, {seconds} s"),
            // The driver keeps its default timeout, which is one minute on most machines.
            Err(error) => {
                eprintln!("tinbox: {name} watches the machine, default timeout: {error}")
            }
        }
        Ok(Some(watchdog))
    }

    /// Resets the timer of the watchdog.
    pub fn feed(&mut self) {
        // A failed write is ignored. The watchdog then restarts the machine, as it should.
        let _ = self.0.write_all(b"\n");
    }
}

/// Resets the timer from a thread while the machine shuts down, because writing cached data may
/// take long. The watchdog restarts a machine that does not shut down.
pub fn feed_to_the_end() {
    match Watchdog::start() {
        Ok(Some(mut watchdog)) => {
            std::thread::spawn(move || {
                feed_for(DOWN_MAX, |wait| {
                    watchdog.feed();
                    std::thread::sleep(wait);
                });
            });
        }
        Ok(None) => {}
        Err(error) => eprintln!("tinbox: {}", stdx::chain(&error)),
    }
}

fn feed_for(limit: Duration, mut feed: impl FnMut(Duration)) {
    let mut fed = Duration::ZERO;
    while fed < limit {
        feed(FEED);
        fed += FEED;
    }
}

/// Returns the names of the watchdogs below `sys`. The flag is true for a hardware device.
fn devices(sys: &Path) -> Vec<(String, bool)> {
    let Ok(entries) = fs::read_dir(sys) else { return Vec::new() };
    let device = |entry: fs::DirEntry| {
        // The software watchdog of the kernel has no device.
        let is_hardware = entry.path().join("device").exists();
        (entry.file_name().to_string_lossy().into_owned(), is_hardware)
    };
    entries.flatten().take(DEVICES_MAX).map(device).collect()
}

/// Returns the preferred watchdog. A hardware watchdog is better than the kernel's software
/// watchdog, which stops with the kernel.
fn best(mut devices: Vec<(String, bool)>) -> Option<String> {
    devices.sort_by_key(|(name, is_hardware)| (!is_hardware, name.len(), name.clone()));
    devices.into_iter().next().map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use std::time::Duration;

    use super::{DOWN_MAX, PATIENCE_SECS, best, devices, feed_for};

    /// Test case: watchdogs with their hardware flag, and the expected choice.
    type Row<'a> = (&'a [(&'a str, bool)], Option<&'a str>);

    #[test]
    fn the_machines_own_is_the_best() {
        let table: [Row<'_>; 4] = [
            (&[], None),
            (&[("watchdog0", false)], Some("watchdog0")),
            (&[("watchdog0", false), ("watchdog1", true)], Some("watchdog1")),
            (&[("watchdog10", true), ("watchdog2", true), ("watchdog0", false)], Some("watchdog2")),
        ];
        for (there, wanted) in table {
            let there = there.iter().map(|(name, hardware)| ((*name).to_owned(), *hardware));
            assert_eq!(best(there.collect()).as_deref(), wanted);
        }
    }

    #[test]
    fn what_hangs_on_a_device_is_the_machines() {
        let sys = tempfile::tempdir().unwrap();
        fs::create_dir_all(sys.path().join("watchdog0")).unwrap();
        fs::create_dir_all(sys.path().join("watchdog1/device")).unwrap();
        assert_eq!(best(devices(sys.path())).as_deref(), Some("watchdog1"));
        assert!(devices(&sys.path().join("none")).is_empty());
    }

    #[test]
    fn the_watchdog_is_fed_while_the_disks_are_written_and_not_for_ever() {
        let mut passed = Duration::ZERO;
        feed_for(DOWN_MAX, |wait| {
            assert!(wait.as_secs() < u64::try_from(PATIENCE_SECS).unwrap());
            passed += wait;
        });
        assert_eq!(passed, DOWN_MAX);
    }
}
