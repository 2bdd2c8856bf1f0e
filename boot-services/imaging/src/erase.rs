//! What a disk can do to forget, which of it is done, and the doing.
//!
//! [`decide`] is pure: what was asked for and what the disk can, to one [`Way`] or to a sentence.
//! [`nvme`] and [`ata`] know the commands, [`samples`] whether they have worked.

pub mod ata;
pub mod nvme;
pub mod samples;

use std::path::Path;

use crate::ata::Ata;
use crate::{Error, Meter};

/// What WIPE_METHOD may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// The strongest that the disk has by itself, else zeros.
    Auto,
    /// Zeros, by the device or written.
    Zero,
    /// The device is told to forget.
    Discard,
    /// NVMe's Format NVM with an erase.
    NvmeFormat,
    /// NVMe's Sanitize.
    NvmeSanitize,
    /// ATA's security erase.
    AtaSecureErase,
}

impl Method {
    /// All of them, with the names that people write.
    pub const ALL: [(Self, &'static str); 6] = [
        (Self::Auto, "auto"),
        (Self::Zero, "zero"),
        (Self::Discard, "discard"),
        (Self::NvmeFormat, "nvme-format"),
        (Self::NvmeSanitize, "nvme-sanitize"),
        (Self::AtaSecureErase, "ata-secure-erase"),
    ];
}

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Zeros.
    Zero,
    /// Discard.
    Discard,
    /// Format NVM.
    Format {
        /// Whether the key goes, and not each block.
        crypto: bool,
    },
    /// Sanitize.
    Sanitize(nvme::Sanitize),
    /// SECURITY ERASE UNIT.
    SecureErase {
        /// Its enhanced form.
        enhanced: bool,
    },
}

impl Way {
    /// As WIPE_METHOD names it.
    pub fn method(self) -> &'static str {
        match self {
            Self::Zero => "zero",
            Self::Discard => "discard",
            Self::Format { .. } => "nvme-format",
            Self::Sanitize(_) => "nvme-sanitize",
            Self::SecureErase { .. } => "ata-secure-erase",
        }
    }

    /// What the device is asked for, in the words of its standard.
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

/// What a block device is, as far as it matters for erasing it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Device {
    /// A namespace of an NVMe controller.
    Nvme(nvme::Abilities),
    /// An ATA disk.
    Ata(ata::Security),
    /// Neither; what it is instead.
    Other(&'static str),
}

/// Choose. With [`Method::Auto`] also why it is nothing stronger, if so.
///
/// # Errors
/// A sentence why what was asked for cannot be, and what can.
pub fn decide(method: Method, device: &Device) -> Result<(Way, Option<String>), String> {
    match (method, device) {
        (Method::Zero, _) => Ok((Way::Zero, None)),
        (Method::Discard, _) => Ok((Way::Discard, None)),
        (Method::NvmeFormat, Device::Nvme(nvme)) => nvme.format().map(|way| (way, None)),
        (Method::NvmeSanitize, Device::Nvme(nvme)) => nvme.sanitize().map(|way| (way, None)),
        (Method::AtaSecureErase, Device::Ata(security)) => security.erase().map(|way| (way, None)),
        (Method::NvmeFormat | Method::NvmeSanitize, _) => {
            Err(format!("it is {}, not an NVMe disk", named(device)))
        }
        (Method::AtaSecureErase, _) => Err(format!("it is {}, not an ATA disk", named(device))),
        (Method::Auto, Device::Nvme(nvme)) => {
            let ways = [nvme.sanitize(), nvme.format()];
            // To overwrite all of a disk takes hours and wears it: after a format, if at all.
            let slow = Way::Sanitize(nvme::Sanitize::Overwrite);
            let (first, last): (Vec<_>, Vec<_>) =
                ways.into_iter().partition(|way| *way != Ok(slow));
            Ok(strongest(first.into_iter().chain(last)))
        }
        (Method::Auto, Device::Ata(security)) => Ok(strongest([security.erase()])),
        (Method::Auto, Device::Other(what)) => {
            Ok((Way::Zero, Some(format!("it is {what}, which has no erase command"))))
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

/// The first that can be, else zeros; and why those before it cannot.
fn strongest(ways: impl IntoIterator<Item = Result<Way, String>>) -> (Way, Option<String>) {
    let mut passed = Vec::new();
    let mut chosen = Way::Zero;
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

/// Where the commands go.
#[derive(Debug)]
pub enum Handle {
    /// To a controller, about one of its namespaces.
    Nvme(nvme::Namespace),
    /// To a disk.
    Ata(Ata),
    /// Nowhere.
    None,
}

/// What kind of disk is at `path`, such as `/dev/nvme0n1`.
///
/// # Errors
/// An NVMe controller that does not say what it can.
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
        // Bridges are known that take a security command and leave the disk locked.
        return other("a USB disk");
    }
    if !name.starts_with("sd") {
        return other("a disk of another kind");
    }
    let asked = Ata::open(path).and_then(|mut ata| Ok((crate::ata::identify(&mut ata)?, ata)));
    match asked {
        Ok((identified, ata)) => Ok((Device::Ata(ata::security(&identified)), Handle::Ata(ata))),
        Err(error) => {
            tracing::info!(disk = name, reason = %error, "no ATA disk");
            other("a SCSI disk")
        }
    }
}

/// Have the device do what was decided; zeros and discards are the caller's. Blocks for as long as
/// that takes, which a device cannot be stopped at.
///
/// # Errors
/// [`Error::Erase`] says what became of it, [`Error::Stopped`].
pub fn carry_out(way: Way, handle: &mut Handle, path: &Path, meter: &Meter) -> Result<(), Error> {
    let failed = |reason| Error::Erase { path: path.to_owned(), reason };
    match (way, handle) {
        (Way::Format { crypto }, Handle::Nvme(namespace)) => {
            let number = namespace.number();
            nvme::format(namespace, number, crypto).map_err(failed)
        }
        (Way::Sanitize(kind), Handle::Nvme(namespace)) => {
            match nvme::sanitize(namespace, kind, meter) {
                Err(_) if meter.is_stopped() => Err(Error::Stopped),
                result => result.map_err(failed),
            }
        }
        (Way::SecureErase { enhanced }, Handle::Ata(drive)) => {
            ata::erase(drive, enhanced, path).map_err(failed)
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
