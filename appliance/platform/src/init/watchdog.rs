//! The machine's own watchdog: a timer that restarts it unless process 1 speaks to it (WD-1).
//!
//! Once it was opened nobody can stop it but a restart (`WATCHDOG_NOWAYOUT`).

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use crate::{Error, sys};

/// How long the machine may go without process 1.
const PATIENCE_SECS: i32 = 60;
/// Between two words to it.
pub const FEED: Duration = Duration::from_secs(15);
/// Longest time for what is in memory to be written to the disks, before the machine is restarted.
const DOWN_MAX: Duration = Duration::from_secs(900);
const SYS: &str = "/sys/class/watchdog";
/// Devices that are looked at.
const DEVICES_MAX: usize = 16;

/// A running timer.
#[derive(Debug)]
pub struct Watchdog(File);

impl Watchdog {
    /// Starts the best one there is; `None` when there is none.
    ///
    /// # Errors
    /// When the kernel refuses.
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
            // It runs with a time of its own, which is a minute at most machines.
            Err(error) => eprintln!("tinbox: {name} watches the machine, its own time: {error}"),
        }
        Ok(Some(watchdog))
    }

    /// The machine is well.
    pub fn feed(&mut self) {
        // Of a device that does not take it, a restart is what is wanted.
        let _ = self.0.write_all(b"\n");
    }
}

/// Feeds it from a thread while the machine goes down, where much may be left to be written; a
/// machine that does not go down is restarted by it.
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

/// Names below `sys`, each with whether it is a device of the machine.
fn devices(sys: &Path) -> Vec<(String, bool)> {
    let Ok(entries) = fs::read_dir(sys) else { return Vec::new() };
    let device = |entry: fs::DirEntry| {
        // The kernel's own timer hangs on no device.
        let is_hardware = entry.path().join("device").exists();
        (entry.file_name().to_string_lossy().into_owned(), is_hardware)
    };
    entries.flatten().take(DEVICES_MAX).map(device).collect()
}

/// One of the machine's rather than the kernel's, which ends with the kernel.
fn best(mut devices: Vec<(String, bool)>) -> Option<String> {
    devices.sort_by_key(|(name, is_hardware)| (!is_hardware, name.len(), name.clone()));
    devices.into_iter().next().map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use std::time::Duration;

    use super::{DOWN_MAX, PATIENCE_SECS, best, devices, feed_for};

    /// Watchdogs and whether they are hardware, and the one to take.
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
