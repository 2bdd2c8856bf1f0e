//! What disks are to become, as Hardware's `metadata.instance.storage` and upstream's action rootio
//! say it: disks and their partitions, arrays, volume groups, file systems.

use std::collections::BTreeSet;

use serde::{Deserialize, Deserializer};

use super::Amount;

/// Longest text that is read: a machine with a hundred disks fits.
pub const TEXT_BYTES: u64 = 1 << 20;
/// Most entries of each list.
const ENTRIES_MAX: usize = 128;
/// The format that is no file system.
pub const SWAP: &str = "swap";

/// Everything that is described.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Storage {
    /// Disks to be partitioned.
    #[serde(deserialize_with = "list")]
    pub disks: Vec<Disk>,
    /// Arrays over disks or partitions.
    #[serde(deserialize_with = "list")]
    pub raid: Vec<Array>,
    /// LVM's, over any of these.
    #[serde(deserialize_with = "list")]
    pub volume_groups: Vec<VolumeGroup>,
    /// On any of these.
    #[serde(deserialize_with = "list")]
    pub filesystems: Vec<Filesystem>,
}

/// One disk.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Disk {
    /// A path, or what the disk is known by.
    pub device: String,
    /// In the order they lie in.
    #[serde(deserialize_with = "list")]
    pub partitions: Vec<Partition>,
    /// Whether what is there goes first.
    pub wipe_table: bool,
}

/// One partition.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Partition {
    /// Its name; SWAP, BIOS and EFI say what it is for, too.
    pub label: String,
    /// From 1; 0 for the next.
    pub number: u32,
    /// In sectors of 512 bytes, or with a unit; 0 for all that is left.
    pub size: Amount,
    /// Where it begins, likewise; 0 for where the one before ends.
    pub start: Amount,
    /// What it is for, where the label does not say it.
    #[serde(deserialize_with = "maybe")]
    pub type_guid: String,
}

/// One array.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Array {
    /// `md0`, `/dev/md0` or `/dev/md/root`.
    pub name: String,
    /// 0, 1, 4, 5, 6, 10 or linear.
    #[serde(deserialize_with = "level")]
    pub level: String,
    /// Its members.
    #[serde(deserialize_with = "list")]
    pub devices: Vec<String>,
    /// Members in waiting.
    #[serde(deserialize_with = "list")]
    pub spare: Vec<String>,
}

/// One volume group.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct VolumeGroup {
    /// Its name.
    pub name: String,
    /// Where it lies.
    #[serde(deserialize_with = "list")]
    pub physical_volumes: Vec<String>,
    /// What it has.
    #[serde(deserialize_with = "list")]
    pub logical_volumes: Vec<LogicalVolume>,
    /// LVM's tags.
    #[serde(deserialize_with = "list")]
    pub tags: Vec<String>,
}

/// One logical volume.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LogicalVolume {
    /// Its name.
    pub name: String,
    /// In bytes, or with a unit; 0 for all that is left.
    pub size: Amount,
    /// LVM's tags.
    #[serde(deserialize_with = "list")]
    pub tags: Vec<String>,
    /// More arguments of lvcreate.
    #[serde(deserialize_with = "list")]
    pub opts: Vec<String>,
}

/// One file system.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Filesystem {
    /// All of it.
    pub mount: Mount,
}

/// What is made where.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Mount {
    /// On which device.
    pub device: String,
    /// ext2, ext3, ext4, xfs, btrfs, vfat or swap.
    pub format: String,
    /// How.
    pub create: Create,
    /// Where the installed system has it; nothing here looks at it.
    pub point: String,
    /// In Hardware; upstream's action does not write them either.
    #[serde(deserialize_with = "list")]
    pub files: Vec<serde::de::IgnoredAny>,
}

/// How a file system is made.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Create {
    /// Whatever is said: what is there is overwritten, as upstream does.
    pub force: bool,
    /// More arguments of the program that makes it.
    #[serde(deserialize_with = "list")]
    pub options: Vec<String>,
}

/// As much of `/metadata` as is looked at.
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

/// Go writes a list that is not there as `null`.
fn list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

fn maybe<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

/// People write `1` as often as `"1"`.
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

/// The fewest members of an array of this level.
fn fewest(level: &str) -> Option<usize> {
    match level {
        "0" | "1" | "10" | "linear" => Some(2),
        "4" | "5" => Some(3),
        "6" => Some(4),
        _ => None,
    }
}

impl Storage {
    /// Understand YAML or JSON.
    ///
    /// # Errors
    /// A sentence about the first mistake.
    pub fn parse(text: &str) -> Result<Self, String> {
        let storage: Self = read(text)?;
        storage.check()?;
        Ok(storage)
    }

    /// What Tinkerbell's `/metadata` says of it.
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
            return Err(format!("a list of more than {ENTRIES_MAX} entries is no machine's"));
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
                    "partition {number} of {} takes all that is left (size 0), and is not the last",
                    self.device
                ));
            }
            // It stands in a line of sfdisk's, between double quotes.
            if !partition.label.chars().all(|c| c.is_ascii_graphic() && c != '"' && c != '\\')
                || partition.label.len() > 36
            {
                let label = &partition.label;
                return Err(format!("{label:?} is no name of a partition: use 36 letters or less"));
            }
            if !partition.type_guid.chars().all(|c| c.is_ascii_hexdigit() || c == '-') {
                return Err(format!("{:?} is no type of a partition", partition.type_guid));
            }
        }
        Ok(())
    }
}

impl Partition {
    /// Its number, as the one at this place of its list.
    pub fn number_at(&self, at: usize) -> u32 {
        if self.number == 0 { u32::try_from(at).unwrap_or(u32::MAX) + 1 } else { self.number }
    }
}

impl Array {
    /// `/dev/md0` or `/dev/md/root`.
    pub fn path(&self) -> String {
        format!("/dev/{}", self.name.trim_start_matches("/dev/"))
    }

    fn check(&self) -> Result<(), String> {
        let name = self.name.trim_start_matches("/dev/");
        let tail = name.strip_prefix("md").unwrap_or_default();
        let numbered = !tail.is_empty() && tail.chars().all(|c| c.is_ascii_digit());
        if !numbered && !tail.strip_prefix('/').is_some_and(is_name) {
            return Err(format!("{:?} is no array's name: use md0 or md/root", self.name));
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
            return Err(format!("{name:?} is no volume group's name: use letters and digits"));
        }
        if self.physical_volumes.is_empty() || self.physical_volumes.len() > ENTRIES_MAX {
            return Err(format!("volume group {name} lies on no physical volume"));
        }
        self.physical_volumes.iter().try_for_each(|path| device(name, path))?;
        let mut names = BTreeSet::new();
        for volume in &self.logical_volumes {
            if !is_name(&volume.name) || !names.insert(&volume.name) {
                let volume = &volume.name;
                return Err(format!("{volume:?} is no name for another volume of {name}"));
            }
        }
        let volumes = self.logical_volumes.iter().flat_map(|volume| &volume.tags);
        match self.tags.iter().chain(volumes).find(|tag| !tag.is_empty() && !is_name(tag)) {
            Some(tag) => Err(format!("{tag:?} is no tag of LVM's: use letters and digits")),
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

/// What LVM takes for names of its own, and mdadm for an array's.
fn is_name(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "_+.-".contains(c);
    !text.is_empty()
        && text.len() <= 127
        && !text.starts_with('-')
        && ![".", ".."].contains(&text)
        && text.chars().all(fits)
}

/// A path or a selector; which one is there is seen later.
fn device(whose: &str, text: &str) -> Result<(), String> {
    if text.is_empty() {
        return Err(format!("{whose} has an entry without a device"));
    }
    if text.split('/').any(|part| part == "..") {
        return Err(format!("{text:?} of {whose} has .. in it"));
    }
    crate::select::Selector::parse(text).map(drop).map_err(|reason| format!("{whose}: {reason}"))
}

#[cfg(test)]
mod tests;
