//! Waits for devices, which the kernel may detect only after process 1 has started.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::Error;

/// Maximum wait for a device to appear, such as a USB or NVMe disk.
pub const APPEAR: Duration = Duration::from_secs(10);
/// Interval between two checks of a device.
pub const LOOK: Duration = Duration::from_millis(50);

/// Waits until `path` exists. Blocks for up to [`APPEAR`], then returns [`Error::NoDisk`].
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
