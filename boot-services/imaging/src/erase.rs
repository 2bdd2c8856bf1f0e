//! Erases disks: detects the methods that a disk supports, selects one, and executes it.
//!
//! [`decide`] is a pure function from the requested method and the disk's abilities to an
//! [`EraseOperation`], or to a sentence for the operator. [`nvme`] and [`ata`] send the commands.
//! [`samples`] verifies an erase.

pub mod ata;
pub mod nvme;
pub mod samples;

use std::path::Path;

use crate::disks::ata::{Ata, identify};
use crate::{Error, Meter};

/// Erase method, a value of WIPE_METHOD.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Strongest erase command that the disk supports, else zeros.
    Auto,
    /// Zeros on the whole disk, zeroed by the device or written.
    Zero,
    /// Discard (TRIM) of the whole disk.
    Discard,
    /// NVMe's Format NVM with secure erase.
    NvmeFormat,
    /// NVMe's Sanitize, which erases the whole subsystem.
    NvmeSanitize,
    /// ATA's SECURITY ERASE UNIT.
    AtaSecureErase,
}

impl Method {
    /// All methods, with their values of WIPE_METHOD.
    pub const ALL: [(Self, &'static str); 6] = [
        (Self::Auto, "auto"),
        (Self::Zero, "zero"),
        (Self::Discard, "discard"),
        (Self::NvmeFormat, "nvme-format"),
        (Self::NvmeSanitize, "nvme-sanitize"),
        (Self::AtaSecureErase, "ata-secure-erase"),
    ];
}

/// Erase operation that [`decide`] selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EraseOperation {
    /// Zeros on the whole disk.
    Zero,
    /// Discard of the whole disk.
    Discard,
    /// Format NVM of the namespace.
    Format {
        /// True for cryptographic erase, which destroys the key; false for user data erase.
        crypto: bool,
    },
    /// Sanitize of the NVMe subsystem.
    Sanitize(nvme::Sanitize),
    /// SECURITY ERASE UNIT of the ATA disk.
    SecureErase {
        /// True for enhanced erase, which includes reallocated sectors.
        enhanced: bool,
    },
}

impl EraseOperation {
    /// Returns the value of WIPE_METHOD for this operation.
    pub fn method(self) -> &'static str {
        match self {
            Self::Zero => "zero",
            Self::Discard => "discard",
            Self::Format { .. } => "nvme-format",
            Self::Sanitize(_) => "nvme-sanitize",
            Self::SecureErase { .. } => "ata-secure-erase",
        }
    }

    /// Returns the operation's name in its standard, for the operator.
    pub fn words(self) -> &'static str {
        match self {
            Self::Zero => "zeros",
            Self::Discard => "discarded by the device",
            Self::Format { crypto: false } => "Format NVM with user data erase",
            Self::Format { crypto: true } => "Format NVM with cryptographic erase",
            Self::Sanitize(nvme::Sanitize::Block) => "Sanitize by block erase",
            Self::Sanitize(nvme::Sanitize::Crypto) => "Sanitize by crypto erase",
            Self::Sanitize(nvme::Sanitize::Overwrite) => "Sanitize by overwrite",
            Self::SecureErase { enhanced: false } => "ATA security erase",
            Self::SecureErase { enhanced: true } => "ATA enhanced security erase",
        }
    }
}

/// Type of a block device, with its erase abilities.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Device {
    /// NVMe namespace, with its erase abilities.
    Nvme(nvme::Abilities),
    /// ATA disk, with its security state.
    Ata(ata::Security),
    /// Any other device, with a description for the operator, such as "a USB disk".
    Other(&'static str),
}

/// Selects the erase operation. With [`Method::Auto`], the second value is the reason why no
/// stronger operation was selected, if any.
///
/// # Errors
/// The device does not support the requested method; the text is a sentence with the reason.
pub fn decide(method: Method, device: &Device) -> Result<(EraseOperation, Option<String>), String> {
    match (method, device) {
        (Method::Zero, _) => Ok((EraseOperation::Zero, None)),
        (Method::Discard, _) => Ok((EraseOperation::Discard, None)),
        (Method::NvmeFormat, Device::Nvme(nvme)) => nvme.format().map(|way| (way, None)),
        (Method::NvmeSanitize, Device::Nvme(nvme)) => nvme.sanitize().map(|way| (way, None)),
        (Method::AtaSecureErase, Device::Ata(security)) => security.erase().map(|way| (way, None)),
        (Method::NvmeFormat | Method::NvmeSanitize, _) => {
            Err(format!("it is {}, not an NVMe disk", named(device)))
        }
        (Method::AtaSecureErase, _) => Err(format!("it is {}, not an ATA disk", named(device))),
        (Method::Auto, Device::Nvme(nvme)) => {
            let ways = [nvme.sanitize(), nvme.format()];
            // An overwrite of the whole disk takes hours and wears the disk, so a format comes
            // first.
            let slow = EraseOperation::Sanitize(nvme::Sanitize::Overwrite);
            let (first, last): (Vec<_>, Vec<_>) =
                ways.into_iter().partition(|way| *way != Ok(slow));
            Ok(strongest(first.into_iter().chain(last)))
        }
        (Method::Auto, Device::Ata(security)) => Ok(strongest([security.erase()])),
        (Method::Auto, Device::Other(what)) => {
            Ok((EraseOperation::Zero, Some(format!("it is {what}, which has no erase command"))))
        }
    }
}

fn named(device: &Device) -> &'static str {
    match device {
        Device::Nvme(_) => "an NVMe disk",
        Device::Ata(_) => "an ATA disk",
        Device::Other(what) => what,
    }
}

/// Returns the first possible operation, else zeros, and the reasons against the earlier ones.
fn strongest(
    ways: impl IntoIterator<Item = Result<EraseOperation, String>>,
) -> (EraseOperation, Option<String>) {
    let mut passed = Vec::new();
    let mut chosen = EraseOperation::Zero;
    for way in ways {
        match way {
            Ok(way) => {
                chosen = way;
                break;
            }
            Err(reason) => passed.push(reason),
        }
    }
    (chosen, (!passed.is_empty()).then(|| passed.join("; ")))
}

/// Open device for the erase commands.
#[derive(Debug)]
pub enum Handle {
    /// NVMe namespace and its controller.
    Nvme(nvme::Namespace),
    /// ATA disk behind the SCSI layer.
    Ata(Ata),
    /// Device without erase commands.
    None,
}

/// Detects the device type at `path`, such as `/dev/nvme0n1`, and opens it for erase commands.
///
/// # Errors
/// The NVMe controller cannot be opened, or Identify fails.
pub fn look(path: &Path) -> Result<(Device, Handle), Error> {
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let name = real.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let folder = Path::new("/sys/class/block").join(&name);
    let way = folder.canonicalize().unwrap_or_default();
    let by = |part: &str| way.iter().any(|word| word.to_string_lossy().starts_with(part));
    let other = |what| Ok((Device::Other(what), Handle::None));
    if folder.join("partition").exists() {
        return other("a partition");
    }
    if name.starts_with("nvme") {
        let mut namespace = nvme::Namespace::open(&folder, path)?;
        let abilities = namespace.abilities()?;
        return Ok((Device::Nvme(abilities), Handle::Nvme(namespace)));
    }
    if by("usb") {
        // Some USB bridges accept a security command and leave the disk locked.
        return other("a USB disk");
    }
    if !name.starts_with("sd") {
        return other("a disk of another kind");
    }
    let asked = Ata::open(path).and_then(|mut ata| Ok((identify(&mut ata)?, ata)));
    match asked {
        Ok((identified, ata)) => Ok((Device::Ata(ata::security(&identified)), Handle::Ata(ata))),
        Err(error) => {
            tracing::info!(disk = name, reason = %error, "not an ATA disk");
            other("a SCSI disk")
        }
    }
}

/// Sends the erase command of `way`; no effect for zeros and discard, which the caller does. Blocks
/// until the device has finished; a running erase cannot be stopped.
///
/// # Errors
/// [`Error::Erase`], with the disk's state afterwards; [`Error::Stopped`].
pub fn carry_out(
    way: EraseOperation,
    handle: &mut Handle,
    path: &Path,
    meter: &Meter,
) -> Result<(), Error> {
    let failed = |reason| Error::Erase { path: path.to_owned(), reason };
    match (way, handle) {
        (EraseOperation::Format { crypto }, Handle::Nvme(namespace)) => {
            let number = namespace.number();
            nvme::format(namespace, number, crypto).map_err(failed)
        }
        (EraseOperation::Sanitize(kind), Handle::Nvme(namespace)) => {
            match nvme::sanitize(namespace, kind, meter) {
                Err(_) if meter.is_stopped() => Err(Error::Stopped),
                result => result.map_err(failed),
            }
        }
        (EraseOperation::SecureErase { enhanced }, Handle::Ata(drive)) => {
            ata::erase(drive, enhanced, path).map_err(failed)
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
