//! Selects the disk that an action names: by path, by a udev link, or by properties of the disk.
//!
//! The agent's OS has no udev, so this module resolves the links of `/dev/disk`. Hints are those of
//! Metal3's rootDeviceHints, as `key=value` separated by commas: `wwn=0x5002538e40a21d6f`,
//! `serialNumber=S4EV,partition=2`, `model=Samsung,minSizeGigabytes=200`. Exactly one disk must
//! match all hints; the agent never guesses which disk to overwrite.

mod choice;
mod links;
mod superblock;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::wait::{APPEAR, LOOK};
use crate::Error;
pub use choice::{Choices, Request, in_scope, record};
use links::{Folder, Roots};

const BY_ID: &str = "/dev/disk/by-id/";
/// Time without a new or removed disk after which the detection of disks counts as complete.
const SETTLED: Duration = Duration::from_secs(3);
/// Prefixes of block device names that are not physical disks of the machine.
const VIRTUAL: [&str; 7] = ["loop", "ram", "zram", "dm-", "nbd", "sr", "md"];

/// Properties of a disk, from sysfs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DiskInfo {
    /// Kernel name of the disk, such as `nvme0n1`.
    pub name: String,
    /// Size of the disk in bytes.
    pub size: u64,
    /// Model name without padding; empty if unknown.
    pub model: String,
    /// Vendor; empty if unknown.
    pub vendor: String,
    /// Serial number; empty if unknown.
    pub serial: String,
    /// World wide name, `naa.…` or `eui.…`; empty if unknown.
    pub wwn: String,
    /// True for a hard disk with rotating platters, false for an SSD.
    pub rotational: bool,
}

/// Selector of a disk or of a partition, parsed from an action's setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selector {
    /// Path of a device, which may appear later.
    Path(PathBuf),
    /// Name in `/dev/disk/by-id` without `-partN`, and the partition number if any.
    Id(String, Option<u32>),
    /// Name in another folder of `/dev/disk`.
    Link(Folder, String),
    /// Hints that the disk must all match, and the partition number if any.
    Hints(Vec<Hint>, Option<u32>),
}

/// Required property of a disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hint {
    /// Kernel name, with or without `/dev/`.
    DeviceName(String),
    /// World wide name, compared without prefix (`naa.`, `eui.`, `uuid.`, `0x`).
    Wwn(String),
    /// Complete serial number, case-insensitive.
    Serial(String),
    /// Substring of the model, case-insensitive.
    Model(String),
    /// Substring of the vendor, case-insensitive.
    Vendor(String),
    /// Minimum size in GiB.
    MinSize(u64),
    /// Maximum size in GiB.
    MaxSize(u64),
    /// True for rotating platters, false for none.
    Rotational(bool),
}

impl Selector {
    /// Parses the selector of an action or of the kernel command line.
    ///
    /// # Errors
    /// A part of the selector is invalid; the text is a sentence.
    pub fn parse(text: &str) -> Result<Self, String> {
        if let Some(id) = text.strip_prefix(BY_ID) {
            let (id, part) = without_part(id);
            return Ok(Self::Id(id.to_owned(), part));
        }
        if let Some((folder, name)) = Folder::split(text) {
            return Ok(Self::Link(folder, name.to_owned()));
        }
        if text.starts_with('/') {
            return Ok(Self::Path(text.into()));
        }
        if !text.contains('=') {
            return Err(format!("{text:?} is not an absolute path such as /dev/sda"));
        }
        let (mut hints, mut part) = (Vec::new(), None);
        for word in text.split(',') {
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            match (key.trim(), value.trim()) {
                (key, "") => return Err(format!("{key:?} has no value")),
                ("partition", value) => {
                    let number = value.parse().map_err(|_| format!("{value:?} is not a number"))?;
                    part = Some(number);
                }
                (key, value) => hints.push(Hint::parse(key, value)?),
            }
        }
        if hints.is_empty() {
            return Err("partition=… needs a hint for the disk".to_owned());
        }
        Ok(Self::Hints(hints, part))
    }

    /// Returns true if the selector names `disk` or a partition of it.
    pub fn fits(&self, disk: &DiskInfo) -> bool {
        match self {
            Self::Path(path) => {
                let path = path.canonicalize().unwrap_or_else(|_| path.clone());
                path == Path::new("/dev").join(&disk.name)
            }
            Self::Id(id, _) => ids(disk).contains(id) || has_serial(id, disk),
            Self::Link(folder, name) => links::target(Roots::own(), *folder, name, disk).is_some(),
            Self::Hints(hints, _) => hints.iter().all(|hint| hint.fits(disk)),
        }
    }

    /// Returns the number of the selected partition of `disk`; `None` for the whole disk.
    fn partition(&self, disk: &DiskInfo) -> Option<u32> {
        match self {
            Self::Path(_) => None,
            Self::Id(_, part) | Self::Hints(_, part) => *part,
            Self::Link(folder, name) => {
                let number = links::target(Roots::own(), *folder, name, disk);
                number.filter(|number| *number > 0)
            }
        }
    }

    /// Returns true if only one disk can match. A disk that appears later cannot change the
    /// selection.
    fn is_identity(&self) -> bool {
        match self {
            Self::Path(_) | Self::Id(..) | Self::Link(..) => true,
            Self::Hints(hints, _) => hints
                .iter()
                .any(|hint| matches!(hint, Hint::Wwn(_) | Hint::Serial(_) | Hint::DeviceName(_))),
        }
    }

    /// Returns the key under which the box records the selected disk: the sorted hints, without a
    /// partition. `None`: a path, a link, or hints with a WWN or serial number.
    fn recorded_as(&self) -> Option<String> {
        let Self::Hints(hints, _) = self else { return None };
        if hints.iter().any(|hint| matches!(hint, Hint::Wwn(_) | Hint::Serial(_))) {
            return None;
        }
        let mut words: Vec<String> = hints.iter().map(Hint::to_string).collect();
        words.sort();
        Some(words.join(","))
    }
}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DeviceName(name) => write!(f, "deviceName={name}"),
            Self::Wwn(wwn) => write!(f, "wwn={wwn}"),
            Self::Serial(serial) => write!(f, "serialNumber={serial}"),
            Self::Model(model) => write!(f, "model={model}"),
            Self::Vendor(vendor) => write!(f, "vendor={vendor}"),
            Self::MinSize(size) => write!(f, "minSizeGigabytes={size}"),
            Self::MaxSize(size) => write!(f, "maxSizeGigabytes={size}"),
            Self::Rotational(rotational) => write!(f, "rotational={rotational}"),
        }
    }
}

impl Hint {
    fn parse(key: &str, value: &str) -> Result<Self, String> {
        let number = || value.parse::<u64>().map_err(|_| format!("{value:?} is not a number"));
        Ok(match key {
            "deviceName" => Self::DeviceName(value.trim_start_matches("/dev/").to_owned()),
            "wwn" => Self::Wwn(value.to_owned()),
            "serial" | "serialNumber" => Self::Serial(value.to_owned()),
            "model" => Self::Model(value.to_owned()),
            "vendor" => Self::Vendor(value.to_owned()),
            "minSizeGigabytes" => Self::MinSize(number()?),
            "maxSizeGigabytes" => Self::MaxSize(number()?),
            "rotational" => Self::Rotational(
                value.parse().map_err(|_| format!("{value:?} is not true or false"))?,
            ),
            _ => return Err(format!("{key:?} is not a known hint")),
        })
    }

    fn fits(&self, disk: &DiskInfo) -> bool {
        let part = |whole: &str, part: &str| whole.to_lowercase().contains(&part.to_lowercase());
        match self {
            Self::DeviceName(name) => *name == disk.name,
            Self::Wwn(wwn) => !disk.wwn.is_empty() && bare(wwn) == bare(&disk.wwn),
            Self::Serial(serial) => serial.eq_ignore_ascii_case(&disk.serial),
            Self::Model(model) => part(&disk.model, model),
            Self::Vendor(vendor) => part(&disk.vendor, vendor),
            Self::MinSize(size) => disk.size >> 30 >= *size,
            Self::MaxSize(size) => disk.size.div_ceil(1 << 30) <= *size,
            Self::Rotational(rotational) => *rotational == disk.rotational,
        }
    }
}

/// Returns a world wide name in lower case, without prefixes such as `naa.`.
fn bare(wwn: &str) -> String {
    let lower = wwn.to_lowercase();
    let kinds = ["naa.", "eui.", "uuid.", "0x"];
    kinds.iter().fold(lower.as_str(), |text, kind| text.trim_start_matches(kind)).to_owned()
}

/// Splits a udev name into the name without `-partN` and the partition number.
fn without_part(name: &str) -> (&str, Option<u32>) {
    let parted = name
        .rsplit_once("-part")
        .and_then(|(whole, part)| Some((whole, Some(part.parse::<u32>().ok()?))));
    parted.unwrap_or((name, None))
}

/// Returns the names that udev gives a disk (`60-persistent-storage.rules`).
fn ids(disk: &DiskInfo) -> Vec<String> {
    let joined = |text: &str| text.split_whitespace().collect::<Vec<_>>().join("_");
    let mut names = vec![format!("virtio-{}", disk.serial)];
    names.push(format!("nvme-{}_{}", joined(&disk.model), joined(&disk.serial)));
    names.push(format!("nvme-{}_{}_1", joined(&disk.model), joined(&disk.serial)));
    if let Some(wwn) = disk.wwn.strip_prefix("naa.") {
        names.push(format!("wwn-0x{wwn}"));
        // scsi_id: type of the designator, then the number.
        names.push(format!("scsi-3{wwn}"));
    }
    if disk.wwn.starts_with("eui.") {
        names.push(format!("nvme-{}", disk.wwn));
    }
    names
}

/// Returns true if the by-id name ends with the disk's serial number. In `ata-MODEL_SERIAL` the
/// kernel truncates the model, so only the serial number counts. `usb-VENDOR_MODEL_SERIAL-0:0` ends
/// with target and unit.
fn has_serial(id: &str, disk: &DiskInfo) -> bool {
    let serial = disk.serial.split_whitespace().collect::<Vec<_>>().join("_");
    let bare = match id.rsplit_once('-') {
        Some((bare, unit)) if id.starts_with("usb-") && unit.contains(':') => bare,
        _ => id,
    };
    ["ata-", "scsi-", "usb-", "mmc-"].iter().any(|kind| id.starts_with(kind))
        && !serial.is_empty()
        && bare.ends_with(&format!("_{serial}"))
}

/// Lists the machine's physical disks from `/sys/block`, sorted by name.
pub fn disks() -> Vec<DiskInfo> {
    let entries = std::fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let mut disks: Vec<_> = entries.filter_map(|entry| describe(&entry.path())).collect();
    disks.retain(|disk| disk.size > 0 && !VIRTUAL.iter().any(|kind| disk.name.starts_with(kind)));
    disks.sort_by(|a, b| a.name.cmp(&b.name));
    disks
}

/// Reads the properties of a device from its sysfs folder; `None` without a size.
pub fn describe(folder: &Path) -> Option<DiskInfo> {
    let read = |name: &str| {
        let text = std::fs::read(folder.join(name)).unwrap_or_default();
        String::from_utf8_lossy(&text).trim().to_owned()
    };
    let first = |names: [&str; 2]| {
        let all = names.iter().map(|name| read(name));
        all.into_iter().find(|text| !text.is_empty()).unwrap_or_default()
    };
    let sectors: u64 = read("size").parse().ok()?;
    let mut serial = first(["serial", "device/serial"]);
    if serial.is_empty() {
        // SCSI and ATA: a page of inquiry data with a header of four bytes.
        let page = std::fs::read(folder.join("device/vpd_pg80")).unwrap_or_default();
        serial = String::from_utf8_lossy(page.get(4..).unwrap_or_default()).trim().to_owned();
    }
    if serial.is_empty() {
        serial = usb_serial(folder).unwrap_or_default();
    }
    Some(DiskInfo {
        name: folder.file_name()?.to_string_lossy().into_owned(),
        size: sectors.saturating_mul(512),
        model: read("device/model"),
        vendor: read("device/vendor"),
        serial,
        wwn: first(["wwid", "device/wwid"]),
        rotational: read("queue/rotational") == "1",
    })
}

/// Returns the serial number of a disk's USB device; `None` if not on USB.
fn usb_serial(folder: &Path) -> Option<String> {
    let place = folder.canonicalize().ok()?;
    let device = place.ancestors().skip(1).find(|path| path.join("idVendor").exists())?;
    let serial = std::fs::read_to_string(device.join("serial")).ok()?;
    Some(serial.trim().to_owned())
}

/// Returns the only disk that matches the selector. None or several are an error, as a sentence.
pub fn choose<'a>(selector: &Selector, disks: &'a [DiskInfo]) -> Result<&'a DiskInfo, String> {
    let fitting: Vec<_> = disks.iter().filter(|disk| selector.fits(disk)).collect();
    let names = |disks: &[&DiskInfo]| {
        disks.iter().map(|disk| disk.name.as_str()).collect::<Vec<_>>().join(", ")
    };
    match fitting.as_slice() {
        [one] => Ok(one),
        [] => Err(format!("no disk matches; found {}", names(&disks.iter().collect::<Vec<_>>()))),
        several => Err(format!("more than one disk matches: {}", names(several))),
    }
}

/// Returns the device path for a path or selector. Waits up to [`APPEAR`] for the disk. Blocks.
pub fn resolve(named: &Path) -> Result<PathBuf, Error> {
    let text = named.to_string_lossy();
    let refused = |reason| Error::NoSuchDisk { named: text.to_string(), reason };
    let selector = Selector::parse(&text).map_err(refused)?;
    if matches!(selector, Selector::Path(_)) || named.exists() {
        return Ok(named.to_owned());
    }
    let deadline = Instant::now() + APPEAR;
    loop {
        let disks = disks();
        let mut settling = SETTLING.lock().unwrap_or_else(PoisonError::into_inner);
        let is_settled = settling.look(&disks, Instant::now());
        drop(settling);
        let may_choose = selector.is_identity() || is_settled || Instant::now() >= deadline;
        match choose(&selector, &disks) {
            Ok(disk) if may_choose => {
                if let Some(hint) = selector.recorded_as() {
                    let named = text.to_string();
                    record(hint, disk).map_err(|reason| Error::OtherDisk { named, reason })?;
                }
                return Ok(device(&disk.name, selector.partition(disk)));
            }
            Err(reason) if Instant::now() >= deadline => return Err(refused(reason)),
            Ok(_) | Err(_) => std::thread::sleep(LOOK),
        }
    }
}

/// Disks at the last check, and the time of their last change.
#[derive(Debug, Default)]
struct Settling {
    disks: Vec<DiskInfo>,
    since: Option<Instant>,
}

/// Detection state of this boot, shared by all actions.
static SETTLING: Mutex<Settling> = Mutex::new(Settling { disks: Vec::new(), since: None });

impl Settling {
    /// Compares the disks with the last check. Returns true if no disk has appeared or disappeared
    /// for [`SETTLED`]. Controllers detect disks at different times, so a hint that matches one
    /// disk now may match two later.
    fn look(&mut self, disks: &[DiskInfo], now: Instant) -> bool {
        let since = self.since.filter(|_| self.disks == disks).unwrap_or(now);
        (self.disks, self.since) = (disks.to_vec(), Some(since));
        now.duration_since(since) >= SETTLED
    }
}

/// Returns a device path: `/dev/sda1`; `/dev/nvme0n1p1` if the disk's name ends with a digit.
fn device(name: &str, partition: Option<u32>) -> PathBuf {
    let part = match partition {
        None => String::new(),
        Some(number) if name.ends_with(|last: char| last.is_ascii_digit()) => format!("p{number}"),
        Some(number) => number.to_string(),
    };
    Path::new("/dev").join(format!("{name}{part}"))
}

#[cfg(test)]
mod tests;
