//! The clock of a machine whose battery may be dead: never earlier than the system was made or
//! than the box remembers (TM-1).

use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, Timespec, clock_settime};

use crate::{Error, sys};

/// Its time of change is the last time that was known.
const SAVED: &str = "clock";
/// What the system's making wrote; it is as old as the sources.
const BUILT: &str = "/etc/os-release";

/// Sets the clock forward where it is behind, which says that no battery kept it. A box without a
/// clock works all the same.
///
/// Returns whether the time is a guess.
pub fn begin(state: &Path) -> bool {
    let modified = |path: &Path| fs::metadata(path).and_then(|data| data.modified()).ok();
    let known = [modified(&state.join(SAVED)), modified(Path::new(BUILT))];
    let Some(time) = earliest(SystemTime::now(), known) else { return false };
    if let Err(error) = set(time) {
        eprintln!("tinbox: {}", stdx::chain(&error));
    }
    true
}

/// Sets the clock.
///
/// # Errors
/// When the kernel refuses.
pub fn set(time: SystemTime) -> Result<(), Error> {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let time = Timespec {
        tv_sec: i64::try_from(since.as_secs()).unwrap_or_default(),
        tv_nsec: since.subsec_nanos().into(),
    };
    clock_settime(ClockId::Realtime, time).map_err(Error::io("set the clock"))
}

/// Lets the clock run faster, or slower for a negative time, until it has made up for `micros`.
///
/// # Errors
/// When the kernel refuses.
pub fn slew(micros: i64) -> Result<(), Error> {
    sys::slew(micros).map_err(Error::io::<std::io::Error>("let the clock run at another pace"))
}

/// What the clock must be set to, if it is behind what is known.
fn earliest(
    now: SystemTime,
    known: impl IntoIterator<Item = Option<SystemTime>>,
) -> Option<SystemTime> {
    known.into_iter().flatten().max().filter(|known| *known > now)
}

/// Remembers the time.
pub fn keep(state: &Path) {
    let written = File::create(state.join(SAVED)).and_then(|file| {
        file.set_modified(SystemTime::now())?;
        file.sync_all()
    });
    if let Err(error) = written {
        eprintln!("tinbox: cannot remember the time: {error}");
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::earliest;

    #[test]
    fn the_clock_only_goes_forward() {
        let at = |secs| SystemTime::UNIX_EPOCH + Duration::from_secs(secs);
        assert_eq!(earliest(at(0), [Some(at(70)), Some(at(90))]), Some(at(90)));
        assert_eq!(earliest(at(100), [Some(at(70)), Some(at(90))]), None);
        assert_eq!(earliest(at(0), [None, None]), None);
    }
}
