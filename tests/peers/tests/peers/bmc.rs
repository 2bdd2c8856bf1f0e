//! Our BMC driver, and `ipmitool` watching.

mod openipmi;
mod suite17;

use std::time::Duration;

use bmc::{BootDevice, BootOverride};

/// Long enough for a machine with two busy cores.
const PLENTY: Duration = Duration::from_secs(30);

fn boot(device: BootDevice, persistent: bool, efi: bool) -> BootOverride {
    BootOverride { device, persistent, efi }
}
