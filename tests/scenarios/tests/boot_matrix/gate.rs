//! Limit of running machines over all processes of this matrix: nextest runs each test in a process
//! of its own.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use scenarios::poll;

/// The firmware is idle for a third of a boot, so one machine more than processors may run.
const MORE_THAN_PROCESSORS: usize = 1;
/// Timeout for a free place: every other machine of the matrix may come first.
const TURN: Duration = Duration::from_secs(3600);

/// Permission to run one machine, until dropped. The kernel releases the lock of a process that
/// dies.
pub struct Place {
    _lock: File,
}

/// Waits for a place.
pub fn enter() -> Place {
    let places = std::thread::available_parallelism().map_or(1, usize::from) + MORE_THAN_PROCESSORS;
    let folder = std::env::temp_dir();
    let free = || (0..places).find_map(|number| take(&file(&folder, number)));
    poll("a place for one more machine", TURN, free).unwrap()
}

fn file(folder: &Path, number: usize) -> PathBuf {
    folder.join(format!("tinbox-boot-matrix-{number}.lock"))
}

/// Locks this file; `None` when the place is in use.
fn take(path: &Path) -> Option<Place> {
    let lock = File::options().create(true).append(true).open(path).unwrap();
    lock.try_lock().ok().map(|()| Place { _lock: lock })
}

mod tests {
    use super::{file, take};

    #[test]
    fn a_place_is_for_one_machine_at_a_time() {
        let path = file(&std::env::temp_dir(), std::process::id() as usize + 1000);
        let place = take(&path).unwrap();
        assert!(take(&path).is_none());
        drop(place);
        assert!(take(&path).is_some());
        std::fs::remove_file(path).unwrap();
    }
}
