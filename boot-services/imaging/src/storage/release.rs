//! Stops arrays and mappings on disks that will be partitioned, left by an earlier attempt or by
//! the previous system.

use std::path::Path;

use crate::programs::tools::Run;

/// Maximum nesting depth of arrays and mappings; deeper holders are ignored.
const DEPTH_MAX: usize = 8;
/// Maximum number of returned holders.
const HOLDERS_MAX: usize = 1024;

/// Returns the kernel names of all arrays and mappings on the disks and their partitions, topmost
/// first. `class` is `/sys/class/block`.
pub fn holders(class: &Path, disks: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    for disk in disks {
        for name in std::iter::once(disk.clone()).chain(partitions(class, disk)) {
            above(class, &name, 0, &mut found);
        }
    }
    found
}

fn above(class: &Path, name: &str, depth: usize, found: &mut Vec<String>) {
    if depth >= DEPTH_MAX {
        return;
    }
    for holder in names(&class.join(name).join("holders")) {
        if found.len() >= HOLDERS_MAX || found.contains(&holder) {
            continue;
        }
        // An array may have partitions of its own.
        for part in std::iter::once(holder.clone()).chain(partitions(class, &holder)) {
            above(class, &part, depth + 1, found);
        }
        if !found.contains(&holder) {
            found.push(holder);
        }
    }
}

/// Returns the kernel names of a disk's partitions.
pub fn partitions(class: &Path, disk: &str) -> Vec<String> {
    let mut all = names(&class.join(disk));
    all.retain(|name| class.join(disk).join(name).join("partition").exists());
    all
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<_> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Builds the command that stops an array or removes a mapping.
pub fn stop(holder: &str) -> Run {
    let device = format!("/dev/{holder}");
    if holder.starts_with("dm-") {
        Run::on("dmsetup", &["remove", "--retry"], &device)
    } else {
        Run::on("mdadm", &["--stop"], &device)
    }
}

/// Removes broken links in a volume group's folder `/dev/<group>`, and the folder if empty: LVM
/// does not create a group if a folder has its name.
pub fn forget(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_symlink() && !path.exists() {
            let _ = std::fs::remove_file(path);
        }
    }
    // A folder with an existing volume stays. LVM reports the conflict.
    let _ = std::fs::remove_dir(folder);
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::{forget, holders, stop};

    #[test]
    fn only_names_of_what_is_gone_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let group = folder.path().join("vg0");
        std::fs::create_dir(&group).unwrap();
        symlink(folder.path(), group.join("there")).unwrap();
        symlink("/nosuch/vg0-data", group.join("gone")).unwrap();
        forget(&group);
        assert!(group.join("there").is_symlink() && !group.join("gone").is_symlink());
        std::fs::remove_file(group.join("there")).unwrap();
        forget(&group);
        assert!(!group.exists());
        forget(&group);
    }

    #[test]
    fn what_lies_on_a_disk_goes_from_the_top() {
        let folder = tempfile::tempdir().unwrap();
        let (class, devices) = (folder.path().join("class"), folder.path().join("devices"));
        std::fs::create_dir_all(&class).unwrap();
        for (device, parts) in [("sda", &["sda1", "sda2"][..]), ("md0", &["md0p1"]), ("dm-0", &[])]
        {
            std::fs::create_dir_all(devices.join(device).join("holders")).unwrap();
            symlink(devices.join(device), class.join(device)).unwrap();
            for part in parts {
                let place = devices.join(device).join(part);
                std::fs::create_dir_all(place.join("holders")).unwrap();
                std::fs::write(place.join("partition"), "1").unwrap();
                symlink(&place, class.join(part)).unwrap();
            }
        }
        let all = |disks: &[&str]| {
            holders(&class, &disks.iter().map(|disk| (*disk).to_owned()).collect::<Vec<_>>())
        };
        assert!(all(&["sda"]).is_empty());
        std::fs::create_dir(devices.join("sda/sda2/holders/md0")).unwrap();
        std::fs::create_dir(devices.join("md0/md0p1/holders/dm-0")).unwrap();
        assert_eq!(all(&["sda", "sda"]), ["dm-0", "md0"]);
        // A cycle does not occur in sysfs, but must not cause an endless loop.
        std::fs::create_dir(devices.join("dm-0/holders/md0")).unwrap();
        assert_eq!(all(&["sda"]).len(), 2);
        assert!(all(&["nosuch"]).is_empty());
        assert_eq!(stop("md0").arguments, ["--stop", "/dev/md0"]);
        assert_eq!(stop("dm-0").program, "dmsetup");
    }
}
