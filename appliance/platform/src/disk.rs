//! The disk that this system was started from, and its partitions by name. Another disk may carry
//! the same names: the stick that the box was flashed from.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{major, minor};

use crate::Error;

/// Devices under devices: verity on a partition is one.
const DEPTH_MAX: usize = 4;

/// The partitions beside the root, by name (GPT's `PARTLABEL`): `/dev/nvme0n1p4` of `state`.
///
/// # Errors
/// When the root lies on no disk, or the kernel does not say on which.
pub fn partitions() -> Result<BTreeMap<String, PathBuf>, Error> {
    let attempt = || {
        let root = fs::metadata("/")?.dev();
        partitions_beside(Path::new("/sys/dev/block"), (major(root), minor(root)))
    };
    attempt().map_err(Error::io("find the disk that this system lies on"))
}

/// `devices` is `/sys/dev/block`.
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
    let none = || io::Error::new(io::ErrorKind::NotFound, "it lies on no partition");
    if !device.join("partition").exists() {
        return Err(none());
    }
    let disk = device.parent().ok_or_else(none)?;
    let found = fs::read_dir(disk)?.flatten().filter_map(|entry| named(&entry.path()));
    Ok(found.collect())
}

/// The name of a partition, and its device.
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

    /// A verity root on the second partition of a disk, as sysfs shows it.
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
        assert_eq!(whole.to_string(), "it lies on no partition");
        assert!(partitions_beside(&root.path().join("block"), (8, 0)).is_err());
    }
}
