//! Steps of an owner with a box, on any machine. A step that fails panics.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

pub mod backup;
pub mod reset;
pub mod settings;

use std::path::Path;

use crate::boot_volume;

/// Pattern of the console line about the claim, printed once the box has an address.
pub const CLAIM: &str = "claim this box at HTTPS://[0-9.]+/S/";

/// Variables of GRUB on the boot volume of `disk`.
pub fn grubenv(disk: &Path) -> String {
    let read = boot_volume::read(disk, "tinbox/grubenv").unwrap();
    read.trim_end_matches('#').to_owned()
}
