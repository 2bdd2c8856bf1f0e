//! Our BMC driver, checked with `ipmitool`.

pub mod clock;
mod console;
mod full;
mod malformed;
mod openipmi;
mod records;
mod silence;
mod suite17;

use bmc::{BootDevice, BootOverride};

fn boot(device: BootDevice, persistent: bool, efi: bool) -> BootOverride {
    BootOverride { device, persistent, efi }
}
