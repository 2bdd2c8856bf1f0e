//! Disk to overwrite: its description, and the reasons to refuse the disk.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// Size in bytes of the sectors that sysfs counts.
const SECTOR: u64 = 512;
/// Minimum number of characters that confirm a disk.
const TYPED: usize = 4;

/// Description of a disk by the kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Target {
    /// Kernel name of the disk: `sdb`.
    pub name: String,
    /// Model name of the disk; empty if unknown.
    pub model: String,
    /// Serial number of the disk; empty if unknown.
    pub serial: String,
    /// Size of the disk in bytes.
    pub size: u64,
    /// True for a USB stick or a memory card.
    pub removable: bool,
    /// True if the disk refuses writes.
    pub read_only: bool,
    /// Disk sequence number of the kernel (`diskseq`), never reused: identifies disk and medium.
    pub sequence: String,
    /// Name of the whole disk, if the path names a partition.
    pub part_of: Option<String>,
    /// Names of the disk's partitions: `sdb1`, `sdb2`.
    pub partitions: Vec<String>,
    /// Reasons why the disk is in use: `sdb1 is mounted at /home`.
    pub in_use: Vec<String>,
    /// Serial numbers of the machine's other disks.
    pub other_serials: Vec<String>,
}

impl Target {
    /// Describes the disk that `path` names now.
    ///
    /// # Errors
    /// The file cannot be inspected, or is not a disk.
    pub fn find(path: &Path) -> io::Result<Self> {
        Self::described(&fs::metadata(path)?)
    }

    /// Describes the open disk, although its path may name another disk by now.
    ///
    /// # Errors
    /// The file cannot be inspected, or is not a disk.
    pub fn of(disk: &File) -> io::Result<Self> {
        Self::described(&disk.metadata()?)
    }

    fn described(data: &Metadata) -> io::Result<Self> {
        if !data.file_type().is_block_device() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a disk"));
        }
        let device = data.rdev();
        let number = format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
        let sys = fs::canonicalize(Path::new("/sys/dev/block").join(number))?;
        let name = name_of(&sys);
        let part_of = sys.join("partition").exists().then(|| sys.parent().map(name_of)).flatten();
        let partitions = partitions(&sys);
        let number = |file: &str| text(&sys.join(file)).parse::<u64>().unwrap_or_default();
        Ok(Self {
            model: format!("{} {}", text(&sys.join("device/vendor")), model(&sys)).trim().into(),
            serial: serial(&sys),
            size: number("size") * SECTOR,
            removable: number("removable") == 1,
            read_only: number("ro") == 1,
            sequence: text(&sys.join("diskseq")),
            in_use: in_use(&sys, &partitions),
            other_serials: other_serials(&name_of(&sys)),
            partitions: partitions.iter().map(|part| name_of(part)).collect(),
            name,
            part_of,
        })
    }

    /// Returns the text to type as confirmation: the shortest end (at least 4 characters) of the
    /// serial number that is unique on this machine, else of the disk's name.
    pub fn proof(&self) -> &str {
        let named = if self.is_proved_by_serial() { &self.serial } else { &self.name };
        let ends = named.char_indices().rev().skip(TYPED - 1).map(|(at, _)| &named[at..]);
        let is_other = |end: &&str| {
            let mut others = self.other_serials.iter();
            self.is_proved_by_serial() && others.any(|other| ends_with(other, end))
        };
        ends.into_iter().find(|end| !is_other(end)).unwrap_or(named)
    }

    /// Returns true if the disk has a serial number that is unique on this machine.
    fn is_proved_by_serial(&self) -> bool {
        let mut others = self.other_serials.iter();
        !self.serial.is_empty() && !others.any(|other| ends_with(other, &self.serial))
    }

    /// Describes the confirmation text for the prompt, as a phrase.
    pub fn proof_of(&self) -> String {
        let count = self.proof().chars().count();
        let (named, what, why) = match (self.is_proved_by_serial(), self.serial.is_empty()) {
            (true, _) => (&self.serial, "serial number", ""),
            (false, true) => (&self.name, "name", ", as the disk has no serial number"),
            (false, false) => (&self.name, "name", ", as another disk has the same serial number"),
        };
        if count == named.chars().count() {
            return format!("the disk's {what}{why}");
        }
        format!("the last {count} characters of the disk's {what}{why}")
    }

    /// Returns reason and hint to refuse the disk for an image of `size` bytes; `None` to accept.
    pub fn refusal(&self, size: Option<u64>) -> Option<(String, &'static str)> {
        let needed = size.unwrap_or_default();
        if let Some(disk) = &self.part_of {
            return Some((format!("it is a part of {disk}"), "give the whole disk"));
        }
        if !self.in_use.is_empty() {
            let why = self.in_use.join(", ");
            return Some((why, "unmount it first, or choose another disk"));
        }
        if self.read_only {
            return Some(("it is write-protected".to_owned(), "check the write-protect switch"));
        }
        if self.size == 0 {
            return Some(("it contains no medium".to_owned(), "insert a medium"));
        }
        if self.size < needed {
            let (has, needed) = (stdx::bytes(self.size), stdx::bytes(needed));
            return Some((format!("it has {has}, the image needs {needed}"), "take a larger disk"));
        }
        None
    }

    /// Returns the description of the disk for the confirmation prompt.
    pub fn lines(&self) -> [String; 2] {
        let or = |text: &str, none: &str| if text.is_empty() { none } else { text }.to_owned();
        let (model, serial) = (or(&self.model, "no model"), or(&self.serial, "none"));
        let removable = if self.removable { ", removable" } else { "" };
        let holds = or(&self.partitions.join(", "), "no partitions");
        [
            format!(
                "{}: {model}, serial {serial}, {}{removable}",
                self.name,
                stdx::bytes(self.size)
            ),
            format!("it has {holds}; all data on it will be lost"),
        ]
    }
}

fn name_of(sys: &Path) -> String {
    sys.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Reads a file of sysfs, trimmed; empty if it does not exist.
fn text(path: &Path) -> String {
    let bytes = fs::read(path).unwrap_or_default();
    status::plain(String::from_utf8_lossy(&bytes).trim_matches(['\0', ' ', '\n']))
}

fn model(sys: &Path) -> String {
    let (model, name) = (text(&sys.join("device/model")), text(&sys.join("device/name")));
    if model.is_empty() { name } else { model }
}

/// Returns the serial number of the disk, else of its USB device; empty if unknown.
fn serial(sys: &Path) -> String {
    let own = ["serial", "device/serial"].map(|file| text(&sys.join(file)));
    if let Some(own) = own.into_iter().find(|serial| !serial.is_empty()) {
        return own;
    }
    // SCSI: a head of four bytes.
    let page = fs::read(sys.join("device/vpd_pg80")).unwrap_or_default();
    let scsi = String::from_utf8_lossy(page.get(4..).unwrap_or_default()).trim().to_owned();
    if !scsi.is_empty() {
        return status::plain(&scsi);
    }
    let usb = sys.ancestors().find(|folder| folder.join("idVendor").exists());
    usb.map(|usb| text(&usb.join("serial"))).unwrap_or_default()
}

/// Returns the serial numbers of all disks except `name`.
fn other_serials(name: &str) -> Vec<String> {
    let entries = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let disks = entries.filter(|entry| entry.file_name() != name);
    let sys = disks.filter_map(|entry| fs::canonicalize(entry.path()).ok());
    sys.map(|sys| serial(&sys)).filter(|serial| !serial.is_empty()).collect()
}

fn ends_with(text: &str, end: &str) -> bool {
    text.to_ascii_lowercase().ends_with(&end.to_ascii_lowercase())
}

fn partitions(sys: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(sys).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> =
        entries.map(|entry| entry.path()).filter(|it| it.join("partition").exists()).collect();
    found.sort();
    found
}

fn in_use(sys: &Path, partitions: &[PathBuf]) -> Vec<String> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let swaps = fs::read_to_string("/proc/swaps").unwrap_or_default();
    let mut uses = Vec::new();
    for part in [sys].into_iter().chain(partitions.iter().map(PathBuf::as_path)) {
        let name = name_of(part);
        let place = mounted(&mounts, &text(&part.join("dev")));
        uses.extend(place.map(|place| format!("{name} is mounted at {place}")));
        let swap = format!("/dev/{name} ");
        if swaps.lines().any(|line| line.starts_with(&swap)) {
            uses.push(format!("{name} is swap"));
        }
        let holders = fs::read_dir(part.join("holders")).into_iter().flatten().flatten();
        uses.extend(holders.map(|it| format!("{name} is a part of {}", name_of(&it.path()))));
    }
    uses
}

/// Returns the first mount point of the device with this `MAJOR:MINOR` number (proc(5), mountinfo);
/// `None` if it is not mounted.
fn mounted(mounts: &str, number: &str) -> Option<String> {
    let mut lines = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let line = lines.find(|words| words.get(2) == Some(&number) && !number.is_empty())?;
    line.get(4).map(|place| (*place).to_owned())
}

#[cfg(test)]
mod tests;
