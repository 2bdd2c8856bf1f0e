//! Waits for devices that appear after process 1 starts.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::Error;

/// Maximum wait for a device to appear. A USB or NVMe disk is probed after process 1 starts.
pub const APPEAR: Duration = Duration::from_secs(10);
/// Interval between two checks of a device.
pub const LOOK: Duration = Duration::from_millis(50);

/// Waits for a path to exist. Blocks for up to [`APPEAR`].
pub fn wait_for(path: &Path) -> Result<(), Error> {
    let deadline = Instant::now() + APPEAR;
    while !path.exists() {
        if Instant::now() >= deadline {
            return Err(Error::NoDisk { path: path.to_owned(), waited: APPEAR });
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}
