//! Requested layout of disks: disks and their partitions, arrays, volume groups, filesystems. The
//! format is Hardware's `metadata.instance.storage`, which upstream's action rootio also reads.

use std::collections::BTreeSet;

use serde::{Deserialize, Deserializer};

use super::Amount;
use crate::disks::select::Selector;

/// Maximum length of a description in bytes, enough for a machine with a hundred disks.
pub const TEXT_BYTES: u64 = 1 << 20;
/// Maximum number of entries of each list.
const ENTRIES_MAX: usize = 128;
/// Format of swap space, which is not a filesystem.
pub const SWAP: &str = "swap";

/// Description of all disks of a machine.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Storage {
    /// Disks to be partitioned.
    #[serde(deserialize_with = "list")]
    pub disks: Vec<Disk>,
    /// Arrays of disks or partitions.
    #[serde(deserialize_with = "list")]
    pub raid: Vec<Array>,
    /// LVM volume groups on disks, partitions or arrays.
    #[serde(deserialize_with = "list")]
    pub volume_groups: Vec<VolumeGroup>,
    /// Filesystems on any of these devices.
    #[serde(deserialize_with = "list")]
    pub filesystems: Vec<Filesystem>,
}

/// A disk and its partitions.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Disk {
    /// Device path or disk selector.
    pub device: String,
    /// Partitions, in the order on the disk.
    #[serde(deserialize_with = "list")]
    pub partitions: Vec<Partition>,
    /// True to remove the existing partition table first.
    pub wipe_table: bool,
}

/// A partition of a disk.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Partition {
    /// Name of the partition. SWAP, BIOS and EFI also determine its type.
    pub label: String,
    /// Partition number from 1; 0 for the next number.
    pub number: u32,
    /// Size in sectors of 512 bytes, or with a unit; 0 for the rest of the disk.
    pub size: Amount,
    /// Start in sectors of 512 bytes, or with a unit; 0 for the end of the previous partition.
    pub start: Amount,
    /// Type GUID, if the label does not determine the type.
    #[serde(deserialize_with = "maybe")]
    pub type_guid: String,
}

/// A software RAID array.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Array {
    /// Name of the array: `md0`, `/dev/md0` or `/dev/md/root`.
    pub name: String,
    /// RAID level: 0, 1, 4, 5, 6, 10 or linear.
    #[serde(deserialize_with = "level")]
    pub level: String,
    /// Devices of the active members.
    #[serde(deserialize_with = "list")]
    pub devices: Vec<String>,
    /// Devices of the spare members.
    #[serde(deserialize_with = "list")]
    pub spare: Vec<String>,
}

/// An LVM volume group.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct VolumeGroup {
    /// Name of the volume group.
    pub name: String,
    /// Devices of the physical volumes.
    #[serde(deserialize_with = "list")]
    pub physical_volumes: Vec<String>,
    /// Logical volumes to create in the group.
    #[serde(deserialize_with = "list")]
    pub logical_volumes: Vec<LogicalVolume>,
    /// LVM tags of the volume group.
    #[serde(deserialize_with = "list")]
    pub tags: Vec<String>,
}

/// An LVM logical volume.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LogicalVolume {
    /// Name of the logical volume.
    pub name: String,
    /// Size in bytes, or with a unit; 0 for the rest of the group.
    pub size: Amount,
    /// LVM tags of the logical volume.
    #[serde(deserialize_with = "list")]
    pub tags: Vec<String>,
    /// Additional arguments of lvcreate.
    #[serde(deserialize_with = "list")]
    pub opts: Vec<String>,
}

/// A filesystem to create.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Filesystem {
    /// Device, format and options of the filesystem.
    pub mount: Mount,
}

/// Device, format and options of a filesystem.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Mount {
    /// Path or selector of the device to format.
    pub device: String,
    /// Filesystem type: ext2, ext3, ext4, xfs, btrfs, vfat or swap.
    pub format: String,
    /// Options of the format program.
    pub create: Create,
    /// Mount point in the installed system; not used by the agent.
    pub point: String,
    /// Files of Hardware. They are not written, as in upstream's action.
    #[serde(deserialize_with = "list")]
    pub files: Vec<serde::de::IgnoredAny>,
}

/// Options to create a filesystem.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Create {
    /// Ignored: existing content is always overwritten, as upstream does.
    pub force: bool,
    /// Additional arguments of the format program.
    #[serde(deserialize_with = "list")]
    pub options: Vec<String>,
}

/// The part of `/metadata` that is read.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Answer {
    metadata: Metadata,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata {
    instance: Instance,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Instance {
    storage: Storage,
}

fn read<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, String> {
    if text.len() as u64 > TEXT_BYTES {
        return Err(format!("it is longer than {}", stdx::bytes(TEXT_BYTES)));
    }
    let options = serde_saphyr::options! { with_snippet: false };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| error.to_string())
}

/// Reads a list. Go writes a missing list as `null`.
fn list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

fn maybe<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

/// Reads a RAID level. Users write both `1` and `"1"`.
fn level<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Level {
        Number(u32),
        Name(String),
    }
    Ok(match Level::deserialize(from)? {
        Level::Number(number) => number.to_string(),
        Level::Name(name) => name.trim_start_matches("raid").to_owned(),
    })
}

/// Minimum number of members for a RAID level.
fn fewest(level: &str) -> Option<usize> {
    match level {
        "0" | "1" | "10" | "linear" => Some(2),
        "4" | "5" => Some(3),
        "6" => Some(4),
        _ => None,
    }
}

impl Storage {
    /// Parses YAML or JSON.
    ///
    /// # Errors
    /// A sentence about the first mistake.
    pub fn parse(text: &str) -> Result<Self, String> {
        let storage: Self = read(text)?;
        storage.check()?;
        Ok(storage)
    }

    /// Parses the storage description in the response of Tinkerbell's `/metadata`.
    ///
    /// # Errors
    /// A sentence about the first mistake.
    pub fn of_metadata(text: &str) -> Result<Self, String> {
        let answer: Answer = read(text)?;
        let storage = answer.metadata.instance.storage;
        storage.check()?;
        Ok(storage)
    }

    fn check(&self) -> Result<(), String> {
        let longest =
            [self.disks.len(), self.raid.len(), self.volume_groups.len(), self.filesystems.len()];
        if longest.iter().any(|length| *length > ENTRIES_MAX) {
            return Err(format!("a list has more than {ENTRIES_MAX} entries"));
        }
        self.disks.iter().try_for_each(Disk::check)?;
        self.raid.iter().try_for_each(Array::check)?;
        self.volume_groups.iter().try_for_each(VolumeGroup::check)?;
        self.filesystems.iter().try_for_each(|filesystem| filesystem.mount.check())
    }
}

impl Disk {
    fn check(&self) -> Result<(), String> {
        device("disks", &self.device)?;
        if self.partitions.len() > ENTRIES_MAX {
            return Err(format!("{} has more than {ENTRIES_MAX} partitions", self.device));
        }
        let mut numbers = BTreeSet::new();
        for (at, partition) in self.partitions.iter().enumerate() {
            let number = partition.number_at(at);
            if !numbers.insert(number) {
                return Err(format!("{} has partition {number} twice", self.device));
            }
            let last = at + 1 == self.partitions.len();
            if partition.size.number() == 0 && !last {
                return Err(format!(
                    "partition {number} of {} has size 0 (all free space), but is not the last",
                    self.device
                ));
            }
            // The label is written into a line of sfdisk, between double quotes.
            if !partition.label.chars().all(|c| c.is_ascii_graphic() && c != '"' && c != '\\')
                || partition.label.len() > 36
            {
                let label = &partition.label;
                return Err(format!("{label:?} is not a partition label: use up to 36 letters"));
            }
            if !partition.type_guid.chars().all(|c| c.is_ascii_hexdigit() || c == '-') {
                return Err(format!("{:?} is not a partition type GUID", partition.type_guid));
            }
        }
        Ok(())
    }
}

impl Partition {
    /// Returns the number of the partition, whose index in the list is `at`.
    pub fn number_at(&self, at: usize) -> u32 {
        if self.number == 0 { u32::try_from(at).unwrap_or(u32::MAX) + 1 } else { self.number }
    }
}

impl Array {
    /// Device path of the array, `/dev/md0` or `/dev/md/root`.
    pub fn path(&self) -> String {
        format!("/dev/{}", self.name.trim_start_matches("/dev/"))
    }

    fn check(&self) -> Result<(), String> {
        let name = self.name.trim_start_matches("/dev/");
        let tail = name.strip_prefix("md").unwrap_or_default();
        let numbered = !tail.is_empty() && tail.chars().all(|c| c.is_ascii_digit());
        if !numbered && !tail.strip_prefix('/').is_some_and(is_name) {
            return Err(format!("{:?} is not a valid array name: use md0 or md/root", self.name));
        }
        let Some(fewest) = fewest(&self.level) else {
            return Err(format!("array {name} has level {:?}: use 0, 1, 4, 5, 6, 10", self.level));
        };
        let count = self.devices.len();
        if count < fewest || count + self.spare.len() > ENTRIES_MAX {
            let level = &self.level;
            return Err(format!(
                "array {name} of level {level} needs {fewest} devices, not {count}"
            ));
        }
        let members = self.devices.iter().chain(&self.spare);
        let different: BTreeSet<_> = members.clone().collect();
        if different.len() != count + self.spare.len() {
            return Err(format!("array {name} names a device twice"));
        }
        members.into_iter().try_for_each(|member| device(name, member))
    }
}

impl VolumeGroup {
    fn check(&self) -> Result<(), String> {
        let name = &self.name;
        if !is_name(name) {
            return Err(format!("{name:?} is not a volume group name: use letters and digits"));
        }
        if self.physical_volumes.is_empty() || self.physical_volumes.len() > ENTRIES_MAX {
            return Err(format!("volume group {name} has no physical volume"));
        }
        self.physical_volumes.iter().try_for_each(|path| device(name, path))?;
        let mut names = BTreeSet::new();
        for volume in &self.logical_volumes {
            if !is_name(&volume.name) || !names.insert(&volume.name) {
                let volume = &volume.name;
                return Err(format!("{volume:?} is not a valid, new volume name in {name}"));
            }
        }
        let volumes = self.logical_volumes.iter().flat_map(|volume| &volume.tags);
        match self.tags.iter().chain(volumes).find(|tag| !tag.is_empty() && !is_name(tag)) {
            Some(tag) => Err(format!("{tag:?} is not a valid LVM tag: use letters and digits")),
            None => Ok(()),
        }
    }
}

impl Mount {
    fn check(&self) -> Result<(), String> {
        device("filesystems", &self.device)?;
        match self.format.as_str() {
            "ext2" | "ext3" | "ext4" | "xfs" | "btrfs" | "vfat" | SWAP => Ok(()),
            other => Err(format!(
                "{} has format {other:?}: use ext4, ext3, ext2, xfs, btrfs, vfat or swap",
                self.device
            )),
        }
    }
}

/// Checks a name against the rules of LVM for its names and of mdadm for array names.
fn is_name(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "_+.-".contains(c);
    !text.is_empty()
        && text.len() <= 127
        && !text.starts_with('-')
        && ![".", ".."].contains(&text)
        && text.chars().all(fits)
}

/// Checks a device path or selector. The existence of the device is checked later.
fn device(whose: &str, text: &str) -> Result<(), String> {
    if text.is_empty() {
        return Err(format!("{whose} has an entry without a device"));
    }
    if text.split('/').any(|part| part == "..") {
        return Err(format!("{text:?} of {whose} has .. in it"));
    }
    Selector::parse(text).map(drop).map_err(|reason| format!("{whose}: {reason}"))
}

#[cfg(test)]
mod tests;
