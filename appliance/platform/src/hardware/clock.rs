//! System clock of a machine whose clock battery may be empty. The clock is never earlier than the
//! build time of the system or the last saved time (TM-1).

use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, Timespec, clock_settime};

use crate::{Error, sys};

/// File on the state volume. The modification time of this file is the last known time.
const SAVED: &str = "clock";
/// File in the read-only root. The modification time of this file is the build time of the system.
const BUILT: &str = "/etc/os-release";
/// Maximum lead of a saved time over a working clock: two years. A larger lead counts as wrong, and
/// the box uses the clock of its battery.
const AHEAD_MAX: Duration = Duration::from_hours(2 * 366 * 24);

/// Sets the clock forward if it is earlier than the saved time or the build time, because the clock
/// battery is empty. A failure is printed only, because the box works without a correct clock.
///
/// Returns true if the clock was too early, so that the time is only an estimate.
pub fn begin(state: &Path) -> bool {
    let saved = modified(&state.join(SAVED));
    let Some(time) = earliest(SystemTime::now(), saved, built()) else { return false };
    if let Err(error) = set(time) {
        eprintln!("tinbox: {}", stdx::chain(&error));
    }
    true
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|data| data.modified()).ok()
}

/// Returns the build time of the system, or `None` if `/etc/os-release` is missing.
pub fn built() -> Option<SystemTime> {
    modified(Path::new(BUILT))
}

/// Sets the system clock to `time`.
///
/// # Errors
/// The kernel refuses the change.
pub fn set(time: SystemTime) -> Result<(), Error> {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let time = Timespec {
        tv_sec: i64::try_from(since.as_secs()).unwrap_or_default(),
        tv_nsec: since.subsec_nanos().into(),
    };
    clock_settime(ClockId::Realtime, time).map_err(Error::io("set the clock"))
}

/// Corrects the clock by `micros` microseconds by running faster, or slower if negative.
///
/// # Errors
/// The kernel refuses the change.
pub fn slew(micros: i64) -> Result<(), Error> {
    sys::slew(micros).map_err(Error::io::<std::io::Error>("adjust the speed of the clock"))
}

/// Returns the earliest plausible time, or `None` if the clock is not earlier. A clock that is
/// later than the build time works. A saved time more than [`AHEAD_MAX`] ahead of a working clock
/// may come from a wrong NTP server and is ignored.
fn earliest(
    now: SystemTime,
    saved: Option<SystemTime>,
    built: Option<SystemTime>,
) -> Option<SystemTime> {
    let is_alive = built.is_some_and(|built| now >= built);
    let saved = saved.filter(|saved| !is_alive || *saved < now + AHEAD_MAX);
    saved.into_iter().chain(built).max().filter(|known| *known > now)
}

/// Saves the current time as modification time of the file `clock` on the state volume.
pub fn keep(state: &Path) {
    let written = File::create(state.join(SAVED)).and_then(|file| {
        file.set_modified(SystemTime::now())?;
        file.sync_all()
    });
    if let Err(error) = written {
        eprintln!("tinbox: cannot save the time: {error}");
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::earliest;

    #[test]
    fn the_clock_only_goes_forward() {
        let at = |secs| SystemTime::UNIX_EPOCH + Duration::from_secs(secs);
        assert_eq!(earliest(at(0), Some(at(70)), Some(at(90))), Some(at(90)));
        assert_eq!(earliest(at(0), Some(at(90)), Some(at(70))), Some(at(90)));
        assert_eq!(earliest(at(100), Some(at(70)), Some(at(90))), None);
        assert_eq!(earliest(at(0), None, None), None);
    }

    #[test]
    fn a_battery_that_is_alive_wins_over_a_saved_time_of_years_ahead() {
        let built = SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_000_000);
        let (day, year) = (Duration::from_hours(24), Duration::from_hours(366 * 24));
        let now = built + day;
        assert_eq!(earliest(now, Some(built + year * 20), Some(built)), None);
        assert_eq!(earliest(now, Some(now + year), Some(built)), Some(now + year));
        let dead = SystemTime::UNIX_EPOCH;
        let saved = built + year * 20;
        assert_eq!(earliest(dead, Some(saved), Some(built)), Some(saved), "all there is");
    }
}
