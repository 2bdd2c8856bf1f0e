//! Tests of disk properties and selectors.

use std::path::Path;
use std::time::{Duration, Instant};

use super::{DiskInfo, SETTLED, Selector, Settling, choose, describe, device};

fn disks() -> Vec<DiskInfo> {
    let disk = |name: &str, gib: u64, model: &str, serial: &str, wwn: &str, rotational| DiskInfo {
        name: name.to_owned(),
        size: gib << 30,
        model: model.to_owned(),
        vendor: "ATA".to_owned(),
        serial: serial.to_owned(),
        wwn: wwn.to_owned(),
        rotational,
    };
    vec![
        disk("nvme0n1", 238, "KINGSTON SNVS250G", "50026B7684C2", "eui.0026b7684c2", false),
        disk("sda", 465, "Samsung SSD 860", "S3Z9NB0K", "naa.5002538e40a21d6f", false),
        disk("sdb", 3726, "WDC WD40EFRX-68N", "WD-WCC7K1", "naa.50014ee2b", true),
        disk("vda", 20, "", "disk-1", "", true),
    ]
}

#[test]
fn a_disk_is_found_by_every_name_it_has() {
    let disks = disks();
    for (text, name) in [
        ("/dev/disk/by-id/wwn-0x5002538e40a21d6f", "sda"),
        ("/dev/disk/by-id/wwn-0x5002538e40a21d6f-part2", "sda"),
        ("/dev/disk/by-id/nvme-eui.0026b7684c2", "nvme0n1"),
        ("/dev/disk/by-id/nvme-KINGSTON_SNVS250G_50026B7684C2", "nvme0n1"),
        ("/dev/disk/by-id/nvme-KINGSTON_SNVS250G_50026B7684C2_1", "nvme0n1"),
        ("/dev/disk/by-id/ata-WDC_WD40EFRX-68N32N0_WD-WCC7K1", "sdb"),
        ("/dev/disk/by-id/scsi-35002538e40a21d6f", "sda"),
        ("/dev/disk/by-id/usb-WDC_WD40EFRX_WD-WCC7K1-0:0-part1", "sdb"),
        ("/dev/disk/by-id/virtio-disk-1", "vda"),
        ("wwn=0x5002538E40A21D6F", "sda"),
        ("wwn=naa.5002538e40a21d6f", "sda"),
        ("serialNumber=s3z9nb0k", "sda"),
        ("serial=WD-WCC7K1,partition=1", "sdb"),
        ("model=samsung", "sda"),
        ("minSizeGigabytes=1000", "sdb"),
        ("rotational=false,maxSizeGigabytes=300", "nvme0n1"),
        ("deviceName=/dev/sdb", "sdb"),
        ("vendor=ata,minSizeGigabytes=400,rotational=false", "sda"),
    ] {
        let selector = Selector::parse(text).unwrap();
        assert_eq!(choose(&selector, &disks).map(|disk| disk.name.as_str()), Ok(name), "{text}");
    }
}

#[test]
fn what_is_not_clear_is_refused() {
    for (text, words) in [
        ("rotational=false", "more than one disk matches: nvme0n1, sda"),
        ("serial=S3Z9", "no disk matches; found nvme0n1, sda, sdb, vda"),
        ("/dev/disk/by-id/ata-x_", "no disk matches"),
        ("wwn=0x", "no disk matches"),
    ] {
        let error = choose(&Selector::parse(text).unwrap(), &disks()).unwrap_err();
        assert!(error.starts_with(words), "{text}: {error}");
    }
    for (text, words) in [
        ("vda", "is not an absolute path"),
        ("size=4", "\"size\" is not a known hint"),
        ("serial=", "\"serial\" has no value"),
        ("minSizeGigabytes=big", "\"big\" is not a number"),
        ("partition=1", "partition=… needs a hint for the disk"),
        ("rotational=yes", "is not true or false"),
    ] {
        let error = Selector::parse(text).unwrap_err();
        assert!(error.contains(words), "{text}: {error}");
    }
}

#[test]
fn partitions_are_named_as_the_kernel_does() {
    for (name, partition, path) in [
        ("sda", None, "/dev/sda"),
        ("sda", Some(3), "/dev/sda3"),
        ("nvme0n1", Some(12), "/dev/nvme0n1p12"),
        ("mmcblk0", Some(1), "/dev/mmcblk0p1"),
    ] {
        assert_eq!(device(name, partition), Path::new(path));
    }
}

#[test]
fn the_kernel_describes_a_disk_in_files() {
    let folder = tempfile::tempdir().unwrap();
    let sda = folder.path().join("sda");
    for (name, text) in [
        ("size", "1000\n"),
        ("device/model", "Samsung SSD 860 \n"),
        ("device/vendor", "ATA     \n"),
        ("device/vpd_pg80", "\0\u{1}\0\u{8}S3Z9NB0K  "),
        ("device/wwid", "naa.5002538e40a21d6f\n"),
        ("queue/rotational", "0\n"),
    ] {
        let path = sda.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let disk = describe(&sda).unwrap();
    let described = (disk.name.as_str(), disk.size, disk.model.as_str(), disk.serial.as_str());
    assert_eq!(described, ("sda", 512_000, "Samsung SSD 860", "S3Z9NB0K"));
    assert_eq!((disk.wwn.as_str(), disk.rotational), ("naa.5002538e40a21d6f", false));
}

#[test]
fn a_hint_waits_until_the_disks_have_settled() {
    let (mut settling, start) = (Settling::default(), Instant::now());
    let all = disks();
    let at = |millis| start + Duration::from_millis(millis);
    assert!(!settling.look(&all[..1], at(0)));
    assert!(!settling.look(&all[..1], at(2_900)));
    assert!(!settling.look(&all, at(3_000)), "one more has appeared");
    assert!(!settling.look(&all, at(5_900)));
    assert!(settling.look(&all, at(6_000)));
    assert!(settling.look(&all, at(100_000)), "the next action does not wait");
    assert!(!settling.look(&all[..2], at(100_001)), "one has gone");
    assert!(settling.look(&all[..2], at(100_001) + SETTLED));
    for (text, is_identity) in [
        ("model=Samsung", false),
        ("minSizeGigabytes=100,rotational=false", false),
        ("vendor=ATA,serial=1", true),
        ("wwn=0x5", true),
        ("/dev/sda", true),
        ("/dev/disk/by-path/pci-0000:00:1f.2-ata-1", true),
    ] {
        assert_eq!(Selector::parse(text).unwrap().is_identity(), is_identity, "{text}");
    }
}

#[test]
fn a_hint_that_names_no_single_disk_is_recorded_whatever_its_order() {
    let recorded = |text: &str| Selector::parse(text).unwrap().recorded_as();
    let hint = "minSizeGigabytes=200,model=Samsung";
    for text in [
        "model=Samsung,minSizeGigabytes=200",
        "minSizeGigabytes=200,partition=2,model=Samsung",
        " minSizeGigabytes = 200 , model = Samsung ",
    ] {
        assert_eq!(recorded(text).as_deref(), Some(hint), "{text}");
    }
    // Kernel names may change at each start.
    assert_eq!(recorded("deviceName=/dev/sda").as_deref(), Some("deviceName=sda"));
    for text in ["wwn=naa.5,model=x", "serialNumber=1", "/dev/sda", "/dev/disk/by-id/ata-x_1"] {
        assert_eq!(recorded(text), None, "{text}");
    }
}
