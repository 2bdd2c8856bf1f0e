//! Tests of preserved disks and their device nodes, on a simulated sysfs.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use super::{Nodes, lies_on, parse, protected, set};
use crate::Error;

#[test]
fn a_list_is_understood_whole_or_not_at_all() {
    assert_eq!(parse("/dev/sda; serial=X,model=Y ;").unwrap().len(), 2);
    assert_eq!(parse("").unwrap(), []);
    assert!(parse("serial=X;nonsense").is_err());
}

/// Must be the only test that calls [`set`], which applies to the whole process.
#[test]
fn a_name_that_fits_no_disk_closes_every_disk() {
    let look = || protected(Path::new("/dev/sda"), Duration::ZERO);
    set(Vec::new());
    assert!(look().unwrap().is_empty());
    for word in [
        "serialNumber=no-such-disk",
        "wwn=0xffffffffffffffff",
        "/dev/no-such-disk1",
        "/dev/mapper/no-such-volume",
        "/dev/no-such-group/volume",
        "/dev/disk/by-id/scsi-3ffffffffffffffff",
        "/dev/disk/by-id/dm-name-no-such-volume",
        "/dev/disk/by-path/pci-ffff:ff:1f.7-ata-1",
        "/dev/disk/by-partuuid/ffffffff-ff",
        "/dev/disk/by-partlabel/no-such-partition",
        "/dev/disk/by-uuid/ffff-ffff",
        "/dev/disk/by-label/no-such-label",
        "/dev/disk/by-diskseq/999999",
        "/etc/hostname",
    ] {
        set(parse(word).unwrap());
        let error = look().unwrap_err();
        assert!(
            matches!(&error, Error::PreservedUnknown { word: it, .. } if it == word),
            "{error}"
        );
    }
    set(Vec::new());
}

#[test]
fn a_partition_and_a_mapping_lie_on_their_disks() {
    let folder = tempfile::tempdir().unwrap();
    let (class, devices) = (folder.path().join("class"), folder.path().join("devices"));
    std::fs::create_dir_all(devices.join("sda/sda1")).unwrap();
    std::fs::create_dir_all(class.join("dm-0/slaves/sda1")).unwrap();
    std::fs::write(class.join("dm-0/size"), "5").unwrap();
    std::fs::write(devices.join("sda/size"), "9").unwrap();
    std::fs::write(devices.join("sda/sda1/partition"), "1").unwrap();
    symlink(devices.join("sda"), class.join("sda")).unwrap();
    symlink(devices.join("sda/sda1"), class.join("sda1")).unwrap();
    for (name, expected) in [("sda", &["sda"][..]), ("sda1", &["sda"]), ("dm-0", &["dm-0", "sda"])]
    {
        let mut disks = Vec::new();
        lies_on(&class, name, &mut disks);
        let names: Vec<_> = disks.iter().map(|disk| disk.name.as_str()).collect();
        assert_eq!(names, expected, "{name}");
    }
}

#[test]
fn every_node_that_reaches_a_disk_is_found_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let (class, devices) = (folder.path().join("class"), folder.path().join("devices"));
    let make = |path: &str, node: &str| {
        let path = devices.join(path);
        std::fs::create_dir_all(&path).unwrap();
        std::fs::write(path.join("size"), "9").unwrap();
        std::fs::write(path.join("uevent"), format!("MAJOR=8\nDEVNAME={node}\n")).unwrap();
    };
    make("0:0:0:0/block/sda", "sda");
    make("0:0:0:0/block/sda/sda1", "sda1");
    make("0:0:0:0/scsi_generic/sg0", "sg0");
    make("0:0:0:0/bsg/0:0:0:0", "bsg/0:0:0:0");
    make("1:0:0:0/block/sdb", "sdb");
    make("1:0:0:0/scsi_generic/sg1", "sg1");
    make("nvme0", "nvme0");
    make("nvme0/nvme0n1", "nvme0n1");
    make("nvme0/nvme0n2", "nvme0n2");
    make("nvme0/ng0n1", "ng0n1");
    make("virtual/dm-0", "dm-0");
    std::fs::create_dir_all(&class).unwrap();
    for (name, place, device) in [
        ("sda", "0:0:0:0/block/sda", Some("0:0:0:0")),
        ("sda1", "0:0:0:0/block/sda/sda1", None),
        ("sdb", "1:0:0:0/block/sdb", Some("1:0:0:0")),
        ("nvme0n1", "nvme0/nvme0n1", Some("nvme0")),
        ("nvme0n2", "nvme0/nvme0n2", Some("nvme0")),
        ("dm-0", "virtual/dm-0", None),
    ] {
        symlink(devices.join(place), class.join(name)).unwrap();
        if let Some(device) = device {
            symlink(devices.join(device), devices.join(place).join("device")).unwrap();
            // Every device has a link to its driver, which leads to all devices of the driver.
            let driver = devices.join(device).join("driver");
            let _ = symlink(&devices, driver);
        }
    }
    std::fs::write(devices.join("0:0:0:0/block/sda/sda1/partition"), "1").unwrap();
    std::fs::create_dir_all(devices.join("virtual/dm-0/slaves/sda1")).unwrap();
    let nodes = |meant: &str| {
        let nodes = Nodes::find(&class, |disk| disk.name == meant);
        let shown = |paths: Vec<std::path::PathBuf>| {
            let paths = paths.iter().map(|path| path.display().to_string());
            paths.collect::<Vec<_>>().join(" ")
        };
        (shown(nodes.block), shown(nodes.commands))
    };
    let words = |block: &str, commands: &str| (block.to_owned(), commands.to_owned());
    let of_sda = words("/dev/dm-0 /dev/sda /dev/sda1", "/dev/bsg/0:0:0:0 /dev/sg0");
    assert_eq!(nodes("sda"), of_sda);
    assert_eq!(nodes("sdb"), words("/dev/sdb", "/dev/sg1"));
    assert_eq!(nodes("nvme0n1"), words("/dev/nvme0n1", "/dev/ng0n1 /dev/nvme0"));
    assert_eq!(nodes("none"), words("", ""));
}
