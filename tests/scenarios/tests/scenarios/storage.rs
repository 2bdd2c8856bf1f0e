//! Disks configured by a description: two of them become a mirror and a volume group. The machine's
//! agent has none of the required programs and fetches them from the box.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::process::Command;

use scenarios::{Action, BootOrder, Image, Lab, LabConfig, NucConfig, Origin, RackConfig};

use crate::watch::{SMALL, file_server, tiny};

/// Text that is written onto the mirror, and must be on each of its members.
const MARK: &str = "a-mark-of-the-scenario-storage-that-is-on-both-members";
/// Bytes at the beginning of each disk, which contain only its part of the mirror.
const SEARCHED: u64 = 256 << 20;

/// Description of the disks, as the rest of an action.
const STORAGE: &str = "    image: storage:latest
    timeout: 600
    environment:
      STORAGE: |
        disks:
        - device: serialNumber=TINBOX1
          wipe_table: true
          partitions:
          - {label: BIOS, size: 4096}
          - {label: MIRROR, size: 256MiB}
          - {label: VOLUMES, size: 0}
        - device: serialNumber=TINBOX1-2
          wipe_table: true
          partitions:
          - {label: BIOS, size: 4096}
          - {label: MIRROR, size: 256MiB}
          - {label: VOLUMES, size: 0}
        raid:
        - name: md0
          level: 1
          devices: ['serialNumber=TINBOX1,partition=2', /dev/vdb2]
        volume_groups:
        - name: vg0
          physical_volumes: [/dev/vda3, /dev/vdb3]
          logical_volumes: [{name: data, size: 320MiB}]
        filesystems:
        - mount: {device: /dev/md0, format: ext4, point: /, create: {options: [-L, ROOT]}}
        - mount: {device: /dev/vg0/data, format: xfs, point: /data}
";

/// Builds the root of a system as an archive: busybox and a file to check.
fn served(lab: &Lab, folder: &Path) -> String {
    let tree = lab.rack.work_dir().join("tree");
    for place in ["bin", "dev", "proc", "sys"] {
        std::fs::create_dir_all(tree.join(place)).unwrap();
    }
    std::fs::create_dir_all(folder).unwrap();
    std::fs::copy("/bin/busybox", tree.join("bin/busybox")).unwrap();
    std::fs::write(tree.join("mark"), MARK).unwrap();
    let archive = folder.join("root.tar.gz");
    let mut tar = Command::new("tar");
    tar.arg("-czf").arg(&archive).arg("-C").arg(&tree).arg(".");
    assert!(tar.status().unwrap().success(), "{tar:?}");
    let output = Command::new("sha256sum").arg(&archive).output().unwrap();
    String::from_utf8(output.stdout).unwrap().split_whitespace().next().unwrap().to_owned()
}

/// An action that runs a command of the system on a device.
fn look(name: &str, device: &str, kind: &str, line: &str) -> String {
    format!(
        "  - name: {name}\n\
         \x20   image: quay.io/tinkerbell/actions/cexec:latest\n\
         \x20   timeout: 300\n\
         \x20   environment:\n\
         \x20     BLOCK_DEVICE: {device}\n\
         \x20     FS_TYPE: {kind}\n\
         \x20     CHROOT: y\n\
         \x20     DEFAULT_INTERPRETER: /bin/busybox sh -c\n\
         \x20     CMD_LINE: \"{line}\"\n"
    )
}

fn template(sha256: &str, image: &Image) -> String {
    let unpack = |name: &str, device: &str, kind: &str| {
        format!(
            "  - name: {name}\n\
             \x20   image: quay.io/tinkerbell/actions/archive2disk:latest\n\
             \x20   timeout: 300\n\
             \x20   environment:\n\
             \x20     ARCHIVE_URL: http://10.77.0.1:8099/root.tar.gz\n\
             \x20     ARCHIVE_TYPE: targz\n\
             \x20     TARFILE_CHECKSUM: sha256:{sha256}\n\
             \x20     DEST_DISK: {device}\n\
             \x20     FS_TYPE: {kind}\n\
             \x20     DEST_PATH: /\n"
        )
    };
    let grow = format!(
        "  - name: grow\n\
         \x20   image: quay.io/tinkerbell/actions/image2disk:latest\n\
         \x20   timeout: 600\n\
         \x20   environment:\n\
         \x20     IMG_URL: {}\n\
         \x20     IMG_SHA256: {}\n\
         \x20     DEST_DISK: serialNumber=TINBOX1-3\n\
         \x20     GROW_LAST_PARTITION: true\n",
        image.url, image.sha256
    );
    // The second run must replace the partitions and arrays of the first run.
    format!(
        "version: \"0.1\"\nname: storage\nglobal_timeout: 3600\ntasks:\n- name: storage\n\
         \x20 worker: \"{{{{.device_1}}}}\"\n\x20 actions:\n\
         \x20 - name: first\n{STORAGE}\x20 - name: again\n{STORAGE}{}{}{}{}\
         \x20 - name: reboot\n\x20   image: quay.io/tinkerbell/actions/reboot:latest\n\
         \x20   timeout: 300\n{}{}",
        grow,
        unpack("unpack-mirror", "/dev/md0", "ext4"),
        unpack("unpack-volume", "/dev/vg0/data", "xfs"),
        look("mirror", "/dev/md0", "ext4", "/bin/busybox cat /proc/mdstat"),
        look(
            "mirror-later",
            "/dev/md0",
            "ext4",
            "/bin/busybox cat /proc/mdstat; echo read $(/bin/busybox cat /mark) later"
        ),
        look(
            "volume-later",
            "/dev/vg0/data",
            "xfs",
            "echo volume $(/bin/busybox cat /mark) later; /bin/busybox df -m /"
        ),
    )
}

/// True when the mark is in a disk's part of the mirror: a small file begins at a block boundary.
fn is_marked(disk: &Path) -> bool {
    let mut bytes = Vec::new();
    File::open(disk).unwrap().take(SEARCHED).read_to_end(&mut bytes).unwrap();
    bytes.chunks(1024).any(|block| block.starts_with(MARK.as_bytes()))
}

#[test]
fn two_disks_become_a_mirror_and_a_volume_group() {
    let nuc = NucConfig {
        disk_bytes: 1 << 30,
        more_disks: vec![1 << 30, 256 << 20],
        // The disks have a partition table but no boot code.
        boot_order: BootOrder::NetworkFirst,
        ..NucConfig::bios()
    };
    let lab = Lab::start(LabConfig::new(RackConfig::new("storage").nuc(nuc))).unwrap();
    lab.push_nuc(1, "ssh-ed25519 AAAA scenario", "#cloud-config\n").unwrap();
    let folder = lab.rack.work_dir().join("served");
    let sum = served(&lab, &folder);
    let _server = file_server(&lab, &folder, "10.77.0.1:8099", &["--etag"]);
    let file = lab.file("storage.yaml", &template(&sum, &tiny(&lab))).unwrap();
    lab.tinbox(&["template", "create", "--file", file.to_str().unwrap()]).unwrap();

    let workflow = lab.create_workflow("storage", 1).unwrap();
    let view = lab.wait_success(&workflow, 2 * SMALL).unwrap();
    for action in ["first", "again"] {
        let said = view.message(action);
        assert!(said.contains("6 partitions on 2 disks, /dev/md0 (RAID 1 of 2 devices)"), "{said}");
        assert!(said.contains("volume group vg0 (1 volume)"), "{said}");
        assert!(said.ends_with("made ext4 on /dev/md0, xfs on /dev/vg0/data"), "{said}");
    }
    let grown = view.message("grow");
    assert!(grown.contains("grew /dev/vdc1 from ") && grown.ends_with("with its ext4"), "{grown}");
    let serial = lab.rack.nuc(1).serial();
    let said = |text: &str| serial.wait_for(text, SMALL).unwrap();
    said("md0 : active raid1");
    said(&format!("said=read {MARK} later"));
    said(&format!("said=volume {MARK} later"));
    // The agent itself rebooted: the box has not switched the machine off and on.
    assert_eq!(lab.rack.nuc(1).count(Origin::Bmc, Action::On), 1);
    lab.rack.nuc(1).power_off();
    assert!(is_marked(lab.rack.nuc(1).disk()), "the first member has it");
    assert!(is_marked(&lab.rack.nuc(1).more_disk(2)), "the second member has it");
    lab.rack.succeed();
}
