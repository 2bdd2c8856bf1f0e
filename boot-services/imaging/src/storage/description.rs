//! Storage description: partitions of disks, arrays, volume groups, filesystems. The format is
//! Hardware's `metadata.instance.storage`, as for upstream's action rootio.

use std::collections::BTreeSet;

use serde::{Deserialize, Deserializer};

use super::Amount;
use crate::disks::select::Selector;

/// Maximum length of a description in bytes; enough for a hundred disks.
pub const TEXT_BYTES: u64 = 1 << 20;
/// Maximum number of entries of a list.
const ENTRIES_MAX: usize = 128;
/// Value of [`Mount::format`] for swap space.
pub const SWAP: &str = "swap";

/// Requested storage of a machine.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Storage {
    /// Disks to partition, each with its partitions.
    #[serde(deserialize_with = "list")]
    pub disks: Vec<Disk>,
    /// Software RAID arrays of disks or partitions.
    #[serde(deserialize_with = "list")]
    pub raid: Vec<Array>,
    /// LVM volume groups on disks, partitions or arrays.
    #[serde(deserialize_with = "list")]
    pub volume_groups: Vec<VolumeGroup>,
    /// Filesystems on disks, partitions, arrays or logical volumes.
    #[serde(deserialize_with = "list")]
    pub filesystems: Vec<Filesystem>,
}

/// Disk with its partitions.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Disk {
    /// Device path or disk selector.
    pub device: String,
    /// Partitions, in the order on the disk.
    #[serde(deserialize_with = "list")]
    pub partitions: Vec<Partition>,
    /// True to replace an existing partition table; false refuses the disk if its table differs.
    pub wipe_table: bool,
}

/// Partition to create on a disk.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Partition {
    /// Name of the partition, up to 36 characters. SWAP, BIOS and EFI also determine the type.
    pub label: String,
    /// Partition number from 1; 0 for the position in the list.
    pub number: u32,
    /// Size in sectors of 512 bytes, or with a unit; 0 (last partition only): the rest of the disk.
    pub size: Amount,
    /// Start in sectors of 512 bytes, or with a unit; 0: the next MiB after the previous partition.
    pub start: Amount,
    /// Partition type GUID; empty to use the type of the label, or Linux data.
    #[serde(deserialize_with = "maybe")]
    pub type_guid: String,
}

/// Software RAID array to create (mdadm).
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

/// LVM volume group to create.
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

/// LVM logical volume to create.
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

/// Filesystem or swap space to create.
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
    /// Device path or selector of the device to format.
    pub device: String,
    /// Filesystem type: ext2, ext3, ext4, xfs, btrfs, vfat or swap.
    pub format: String,
    /// Options for the creation.
    pub create: Create,
    /// Mount point in the installed system; ignored by the agent.
    pub point: String,
    /// Files to write; ignored, as in upstream's action.
    #[serde(deserialize_with = "list")]
    pub files: Vec<serde::de::IgnoredAny>,
}

/// Options to create a filesystem, in [`Mount::create`].
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Create {
    /// Ignored: existing content is always overwritten, as upstream does.
    pub force: bool,
    /// Additional arguments of the mkfs program.
    #[serde(deserialize_with = "list")]
    pub options: Vec<String>,
}

/// Used part of Tinkerbell's `/metadata` response.
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
        return Err(format!("the description is longer than {}", stdx::bytes(TEXT_BYTES)));
    }
    let options = serde_saphyr::options! { with_snippet: false };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| error.to_string())
}

/// Deserializes a list; `null`, which Go writes for a missing list, is empty.
fn list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

fn maybe<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

/// Deserializes a RAID level, a number or a text such as `raid1`.
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

/// Returns the minimum number of members for a RAID level; `None` for an invalid level.
fn fewest(level: &str) -> Option<usize> {
    match level {
        "0" | "1" | "10" | "linear" => Some(2),
        "4" | "5" => Some(3),
        "6" => Some(4),
        _ => None,
    }
}

impl Storage {
    /// Parses and validates a description in YAML or JSON.
    ///
    /// # Errors
    /// The description is invalid; the text is a sentence about the first mistake.
    pub fn parse(text: &str) -> Result<Self, String> {
        let storage: Self = read(text)?;
        storage.check()?;
        Ok(storage)
    }

    /// Parses and validates the description in the response of Tinkerbell's `/metadata`.
    ///
    /// # Errors
    /// The description is invalid; the text is a sentence about the first mistake.
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
    /// Returns the partition number: `number`, or the list index `at` plus 1.
    pub fn number_at(&self, at: usize) -> u32 {
        if self.number == 0 { u32::try_from(at).unwrap_or(u32::MAX) + 1 } else { self.number }
    }
}

impl Array {
    /// Returns the device path of the array, `/dev/md0` or `/dev/md/root`.
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

/// Returns true for a valid name of an LVM group, volume or tag, or of an mdadm array.
fn is_name(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "_+.-".contains(c);
    !text.is_empty()
        && text.len() <= 127
        && !text.starts_with('-')
        && ![".", ".."].contains(&text)
        && text.chars().all(fits)
}

/// Checks the syntax of a device path or selector. `whose` is for the error.
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
