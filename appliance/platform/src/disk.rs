//! Partitions, by name, of the disk that this system was started from. Another disk, such as the
//! USB stick that the box was flashed from, may have partitions of equal names.

pub mod growth;
pub mod mount_points;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{major, minor};

use crate::Error;

/// Maximum number of stacked block devices below the root, such as dm-verity on a partition.
const DEPTH_MAX: usize = 4;

/// Returns the device of each partition on the disk of the root, by name (GPT's `PARTLABEL`):
/// `state` is `/dev/nvme0n1p4`.
///
/// # Errors
/// The root is not on a partition of a disk, or sysfs cannot be read.
pub fn partitions() -> Result<BTreeMap<String, PathBuf>, Error> {
    let attempt = || {
        let root = fs::metadata("/")?.dev();
        partitions_beside(Path::new("/sys/dev/block"), (major(root), minor(root)))
    };
    attempt().map_err(Error::io("find the disk of this system"))
}

/// Finds the partitions below `devices`, which is `/sys/dev/block` or a copy for tests.
fn partitions_beside(
    devices: &Path,
    (major, minor): (u32, u32),
) -> io::Result<BTreeMap<String, PathBuf>> {
    let mut device = devices.join(format!("{major}:{minor}")).canonicalize()?;
    for _ in 0..DEPTH_MAX {
        let Some(below) = fs::read_dir(device.join("slaves")).ok().and_then(|mut all| all.next())
        else {
            break;
        };
        device = below?.path().canonicalize()?;
    }
    let none = || io::Error::new(io::ErrorKind::NotFound, "it is not on a partition");
    if !device.join("partition").exists() {
        return Err(none());
    }
    let disk = device.parent().ok_or_else(none)?;
    let found = fs::read_dir(disk)?.flatten().filter_map(|entry| named(&entry.path()));
    Ok(found.collect())
}

/// Returns the name and the device of a partition from its `uevent` file in sysfs.
fn named(folder: &Path) -> Option<(String, PathBuf)> {
    let text = fs::read_to_string(folder.join("uevent")).ok()?;
    let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    Some((value("PARTNAME")?.to_owned(), Path::new("/dev").join(value("DEVNAME")?)))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use super::partitions_beside;

    /// Builds a copy of sysfs with a dm-verity root on the second partition of a disk.
    fn sysfs(root: &Path) {
        for (at, name) in [(1, "TINBOX"), (2, "root-a"), (4, "state")] {
            let folder = root.join(format!("devices/nvme0n1/nvme0n1p{at}"));
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("partition"), format!("{at}\n")).unwrap();
            let text = format!("MAJOR=259\nDEVNAME=nvme0n1p{at}\nDEVTYPE=partition\nPARTN={at}\n");
            fs::write(folder.join("uevent"), format!("{text}PARTNAME={name}\n")).unwrap();
        }
        fs::create_dir_all(root.join("devices/nvme0n1/queue")).unwrap();
        let slaves = root.join("devices/dm-0/slaves");
        fs::create_dir_all(&slaves).unwrap();
        symlink("../../nvme0n1/nvme0n1p2", slaves.join("nvme0n1p2")).unwrap();
        fs::create_dir_all(root.join("block")).unwrap();
        symlink("../devices/dm-0", root.join("block/254:0")).unwrap();
        symlink("../devices/nvme0n1", root.join("block/259:0")).unwrap();
    }

    #[test]
    fn what_lies_beside_the_root() {
        let root = tempfile::tempdir().unwrap();
        sysfs(root.path());
        let found = partitions_beside(&root.path().join("block"), (254, 0)).unwrap();
        assert_eq!(found["state"], Path::new("/dev/nvme0n1p4"));
        assert_eq!(found.len(), 3);
        let whole = partitions_beside(&root.path().join("block"), (259, 0)).unwrap_err();
        assert_eq!(whole.to_string(), "it is not on a partition");
        assert!(partitions_beside(&root.path().join("block"), (8, 0)).is_err());
    }
}
