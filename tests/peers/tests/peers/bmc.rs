//! Our BMC driver, checked with `ipmitool`.

pub mod clock;
mod console;
mod full;
mod legacy;
mod malformed;
mod openipmi;
mod records;
mod silence;
mod suite17;

use bmc::{BootDevice, BootOverride, Error, IpmiError};

/// Returns the error of the crate `ipmi`.
fn cause(error: &Error) -> &IpmiError {
    match error {
        Error::Ipmi(error) => error,
        other => panic!("expected an error of IPMI, found {other}"),
    }
}

fn boot(device: BootDevice, persistent: bool, efi: bool) -> BootOverride {
    BootOverride { device, persistent, efi }
}
