//! Partition table of the box's disk. The box finds its partitions by their names, so a name here
//! is part of the contract with process 1.

use std::collections::BTreeMap;
use std::fs::File;

use gpt::disk::LogicalBlockSize;
use gpt::mbr::ProtectiveMBR;
use gpt::partition::Partition;
use gpt::partition_types::{EFI, LINUX_FS, LINUX_ROOT_ARM_64, LINUX_ROOT_X64, Type};
use uuid::Uuid;

use crate::{Arch, Error};

/// Bytes of a sector in the partition table.
pub(crate) const SECTOR: u64 = 512;
const MIB: u64 = 1 << 20;
/// Alignment of partitions, a multiple of every disk's physical block size.
const ALIGNMENT: u64 = MIB;

/// Bytes of the boot volume: the kernels of two slots, a third kernel during an update, and the
/// loader.
pub const BOOT_SIZE: u64 = 128 * MIB;
/// Bytes of a slot's root with its hash tree; about three times the size of a release.
pub const ROOT_SIZE: u64 = 128 * MIB;
/// Bytes of the state volume: the box's store, keys and identity. The volume cannot grow later.
/// 10,000 machines with their inventories take 342 MiB (`make bench-growth`), and a newer format as
/// much again.
pub const STATE_SIZE: u64 = 1024 * MIB;
/// Bytes of the cache volume as flashed; the box grows it to the end of its disk.
pub const CACHE_SIZE: u64 = 64 * MIB;

/// UUID of the disk. The UUID of a partition is the same with its number at the end.
const DISK: Uuid = Uuid::from_u128(0x7469_6e62_6f78_4000_8000_0000_0000_0000);

/// Partition of the box's disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// Boot volume with the firmware's boot loader: FAT.
    Boot,
    /// Root of slot A: squashfs, followed by its hash tree.
    RootA,
    /// Root of slot B, in the same format.
    RootB,
    /// State of the box, such as its store and keys: ext4.
    State,
    /// Cache of files that can be downloaded again: ext4. The last partition, so that it can grow.
    Cache,
}

impl Part {
    /// All partitions, in their order on the disk.
    pub const ALL: [Self; 5] = [Self::Boot, Self::RootA, Self::RootB, Self::State, Self::Cache];

    /// Returns the partition's name, by which the box finds it.
    pub fn label(self) -> &'static str {
        match self {
            Self::Boot => "TINBOX",
            Self::RootA => "root-a",
            Self::RootB => "root-b",
            Self::State => "state",
            Self::Cache => "cache",
        }
    }

    /// Returns the size in bytes, as flashed.
    pub fn size(self) -> u64 {
        match self {
            Self::Boot => BOOT_SIZE,
            Self::RootA | Self::RootB => ROOT_SIZE,
            Self::State => STATE_SIZE,
            Self::Cache => CACHE_SIZE,
        }
    }

    /// Returns the offset on the disk in bytes.
    pub fn offset(self) -> u64 {
        let before = Self::ALL.iter().take_while(|part| **part != self);
        ALIGNMENT + before.map(|part| part.size()).sum::<u64>()
    }

    /// Returns the UUID of the partition and of the file system in it.
    pub fn uuid(self) -> Uuid {
        Uuid::from_u128(DISK.as_u128() | u128::from(self.number()))
    }

    fn number(self) -> u32 {
        match self {
            Self::Boot => 1,
            Self::RootA => 2,
            Self::RootB => 3,
            Self::State => 4,
            Self::Cache => 5,
        }
    }

    fn kind(self, arch: Arch) -> Type {
        match (self, arch) {
            (Self::Boot, _) => EFI,
            (Self::RootA | Self::RootB, Arch::X86_64) => LINUX_ROOT_X64,
            (Self::RootA | Self::RootB, Arch::Aarch64) => LINUX_ROOT_ARM_64,
            (Self::State | Self::Cache, _) => LINUX_FS,
        }
    }
}

/// Returns the bytes of the whole image: every partition, and the backup table at the end.
pub fn disk_size() -> u64 {
    Part::Cache.offset() + Part::Cache.size() + ALIGNMENT
}

/// Writes both tables and the protective MBR into `disk`, which must have its final size.
pub(crate) fn write_table(disk: &mut File, arch: Arch) -> Result<(), Error> {
    let sectors = u32::try_from(disk_size() / SECTOR - 1).unwrap_or(u32::MAX);
    let protective = ProtectiveMBR::with_lb_size(sectors);
    protective.overwrite_lba0(disk).map_err(|error| Error::Table(error.to_string()))?;
    let config = gpt::GptConfig::new().writable(true).logical_block_size(LogicalBlockSize::Lb512);
    let wrong = |error: gpt::GptError| Error::Table(error.to_string());
    let mut table = config.create_from_device(disk, Some(DISK)).map_err(wrong)?;
    let partitions: BTreeMap<u32, Partition> = Part::ALL
        .into_iter()
        .map(|part| {
            let first_lba = part.offset() / SECTOR;
            let entry = Partition {
                part_type_guid: part.kind(arch),
                part_guid: part.uuid(),
                first_lba,
                last_lba: first_lba + part.size() / SECTOR - 1,
                flags: 0,
                name: part.label().to_owned(),
            };
            (part.number(), entry)
        })
        .collect();
    table.update_partitions(partitions).map_err(wrong)?;
    table.write().map_err(wrong)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_follow_each_other_and_fit_a_small_card() {
        let mut end = ALIGNMENT;
        for part in Part::ALL {
            assert_eq!((part.offset(), part.offset() % ALIGNMENT), (end, 0), "{part:?}");
            end += part.size();
        }
        assert_eq!(disk_size(), end + ALIGNMENT);
        assert_eq!(Part::ALL.last(), Some(&Part::Cache), "only the last one can grow");
        assert!(disk_size() <= 1600 * MIB, "it no longer fits a 2 GB card");
    }
}
