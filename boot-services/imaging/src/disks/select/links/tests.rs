//! Tests of the links, on a simulated sysfs. Paths and names are from udev 252.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use tempfile::TempDir;

use super::super::{DiskInfo, Selector};
use super::{Folder, Roots, decoded, target};

/// Simulated machine with the disks below. Each constant is a path in `/sys/devices`.
struct Machine(TempDir);

const SATA: &str = "pci0000:00/0000:00:1f.2/ata2/host1/target1:0:0/1:0:0:0/block/sda";
const NVME: &str = "pci0000:00/0000:00:1d.0/0000:3b:00.0/nvme/nvme0/nvme0n1";
const VIRTIO: &str = "pci0000:00/0000:00:05.0/virtio2/block/vda";
const USB: &str =
    "pci0000:00/0000:00:14.0/usb1/1-2/1-2.3/1-2.3:1.0/host4/target4:0:0/4:0:0:1/block/sdb";
const SAS: &str = "pci0000:3a/0000:3b:00.0/host0/port-0:3/end_device-0:3/target0:0:3/0:0:3:0/\
                   block/sdc";
const SCSI: &str = "pci0000:00/0000:00:10.0/host6/target6:0:1/6:0:1:0/block/sdd";

impl Machine {
    fn new() -> Self {
        let machine = Self(tempfile::tempdir().unwrap());
        fs::create_dir_all(machine.0.path().join("sys/class/block")).unwrap();
        fs::create_dir_all(machine.0.path().join("dev")).unwrap();
        for place in [SATA, NVME, VIRTIO, USB, SAS, SCSI] {
            machine.disk(place);
        }
        machine.write("pci0000:00/0000:00:1f.2/ata2/ata_port/ata2/port_no", "1\n");
        machine.write("pci0000:00/0000:00:10.0/host5/uevent", "");
        let sas = "pci0000:3a/0000:3b:00.0/host0/port-0:3/end_device-0:3/sas_device/end_device-0:3";
        machine.write(&format!("{sas}/phy_identifier"), "3\n");
        machine.write(&format!("{sas}/sas_address"), "0x5000c500a1b2c3d4\n");
        machine
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.path().join("sys/devices").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn disk(&self, place: &str) {
        let name = Path::new(place).file_name().unwrap();
        self.write(&format!("{place}/size"), "1000");
        let devices = self.0.path().join("sys/devices");
        symlink(devices.join(place), self.0.path().join("sys/class/block").join(name)).unwrap();
    }

    /// Returns the disk and the partition number (0: whole disk) of a link.
    fn target(&self, link: &str) -> Option<(&'static str, u32)> {
        let (folder, name) = Folder::split(link).unwrap();
        let (sys, dev) = (self.0.path().join("sys"), self.0.path().join("dev"));
        let roots = Roots { sys: &sys, dev: &dev };
        let found = ["sda", "nvme0n1", "vda", "sdb", "sdc", "sdd"].into_iter().filter_map(|disk| {
            let described = DiskInfo { name: disk.to_owned(), ..DiskInfo::default() };
            Some((disk, target(roots, folder, name, &described)?))
        });
        let found: Vec<_> = found.collect();
        assert!(found.len() <= 1, "{link}: {found:?}");
        found.first().copied()
    }
}

#[test]
fn a_port_leads_to_its_disk() {
    let machine = Machine::new();
    for (link, disk) in [
        ("pci-0000:00:1f.2-ata-1", "sda"),
        ("pci-0000:00:1f.2-ata-1.0", "sda"),
        ("pci-0000:3b:00.0-nvme-1", "nvme0n1"),
        ("pci-0000:00:05.0", "vda"),
        ("virtio-pci-0000:00:05.0", "vda"),
        ("pci-0000:00:14.0-usb-0:2.3:1.0-scsi-0:0:0:1", "sdb"),
        ("pci-0000:3b:00.0-sas-phy3-lun-0", "sdc"),
        ("pci-0000:3b:00.0-sas-0x5000c500a1b2c3d4-lun-0", "sdc"),
        ("pci-0000:00:10.0-scsi-1:0:1:0", "sdd"),
    ] {
        let link = format!("/dev/disk/by-path/{link}");
        assert_eq!(machine.target(&link), Some((disk, 0)), "{link}");
        assert_eq!(machine.target(&format!("{link}-part2")), Some((disk, 2)), "{link}");
        assert!(matches!(Selector::parse(&link), Ok(Selector::Link(Folder::Path, _))));
    }
    for link in
        ["pci-0000:00:1f.2-ata-2", "pci-0000:3b:00.0-sas-phy4-lun-0", "pci-0000:3b:00.0", ""]
    {
        assert_eq!(machine.target(&format!("/dev/disk/by-path/{link}")), None, "{link}");
    }
}

#[test]
fn a_partition_leads_to_its_disk() {
    let machine = Machine::new();
    machine.write(&format!("{SATA}/sda2/partition"), "2\n");
    let uevent = "DEVNAME=sda2\nPARTN=2\nPARTNAME=EFI system\nPARTUUID=8a6b-02\n";
    machine.write(&format!("{SATA}/sda2/uevent"), uevent);
    let mut ext4 = vec![0; 4096];
    ext4[1080..1082].copy_from_slice(b"\x53\xef");
    ext4[1128..1144].copy_from_slice(&[0xab; 16]);
    ext4[1144..1148].copy_from_slice(b"root");
    fs::write(machine.0.path().join("dev/sda2"), ext4).unwrap();
    for link in [
        "by-partuuid/8a6b-02",
        "by-partlabel/EFI\\x20system",
        "by-uuid/abababab-abab-abab-abab-abababababab",
        "by-label/root",
    ] {
        assert_eq!(machine.target(&format!("/dev/disk/{link}")), Some(("sda", 2)), "{link}");
    }
    for link in ["by-partuuid/8a6b-01", "by-partlabel/", "by-uuid/", "by-label/", "by-label/roo"] {
        assert_eq!(machine.target(&format!("/dev/disk/{link}")), None, "{link}");
    }
}

#[test]
fn escaped_bytes_are_decoded() {
    for (name, text) in
        [("a\\x20b", "a b"), ("\\x", "\\x"), ("\\xzz", "\\xzz"), ("\\x2", "\\x2"), ("é", "é")]
    {
        assert_eq!(decoded(name), text);
    }
}
