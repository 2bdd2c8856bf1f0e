//! Actions of an agent other than streaming a raw image, on one machine: erasure by the disks' own
//! commands, qcow2, an archive, a boot loader, and a program that fails twice and then succeeds. In
//! another test, an image is canceled half-way.

use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::process::Command;

use scenarios::{BoxProcess, Lab, LabConfig, NucConfig, RackConfig, WorkflowView};

use crate::faults::bad_server;
use crate::watch::{ONE_START, SMALL, file_server, small_lab, switched_on, wait_small_system};

/// Offset of old data on the disk, beyond the end of every image.
const SECRET_AT: u64 = 2 << 30;
const SECRET: &[u8] = &[0xa5; 1 << 20];

/// Erasure of each disk by another method.
const WIPES: &str = "  - name: wipe
    image: quay.io/tinkerbell/actions/disk-wipe:latest
    timeout: 600
    environment:
      BLOCK_DEVICE: serialNumber=TINBOX1
  - name: wipe-nvme
    image: quay.io/tinkerbell/actions/disk-wipe:latest
    timeout: 600
    environment:
      BLOCK_DEVICE: serialNumber=TINBOX1-NVME
      WIPE_METHOD: nvme-format
  - name: wipe-sata
    image: quay.io/tinkerbell/actions/disk-wipe:latest
    timeout: 600
    environment:
      BLOCK_DEVICE: serialNumber=TINBOX1-SATA
      WIPE_METHOD: auto
";

/// Overwrites the boot code, then installs it again.
const LOADER: &str = "  - name: lose-the-loader
    image: quay.io/tinkerbell/actions/cexec:latest
    timeout: 120
    environment:
      BLOCK_DEVICE: /dev/vda1
      FS_TYPE: ext4
      CMD_LINE: /bin/busybox dd if=/dev/zero of=/dev/vda bs=440 count=1 conv=notrunc,fsync
  - name: loader
    image: quay.io/tinkerbell/actions/grub2disk:latest
    timeout: 300
    environment:
      GRUB_INSTALL_PATH: serialNumber=TINBOX1
      GRUB_DISK: /dev/vda1
      FS_TYPE: ext4
";

fn succeeds(command: &mut Command) {
    assert!(command.status().unwrap().success(), "{command:?}");
}

fn sum(program: &str, file: &Path) -> String {
    let output = Command::new(program).arg(file).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.split_whitespace().next().unwrap().to_owned()
}

/// Serves the small system as qcow2, and an archive with a program for it.
fn served(lab: &Lab) -> (BoxProcess, String) {
    let folder = lab.rack.work_dir().join("served");
    let (raw, qcow2) = (lab.rack.work_dir().join("tiny.raw"), folder.join("tiny.qcow2"));
    let tree = lab.rack.work_dir().join("tree");
    fs::create_dir_all(&folder).unwrap();
    // The small system has its folders in an initramfs, so its disk lacks the folders that programs
    // in a chroot need.
    for place in ["bin", "dev"] {
        fs::create_dir_all(tree.join(place)).unwrap();
    }
    let packed = lab.artifacts().root().join("images/tiny.raw.zst");
    succeeds(Command::new("zstd").args(["-q", "-d"]).arg(packed).arg("-o").arg(&raw));
    let convert = ["convert", "-c", "-f", "raw", "-O", "qcow2"];
    succeeds(Command::new("qemu-img").args(convert).arg(&raw).arg(&qcow2));
    succeeds(Command::new("cp").arg("/bin/busybox").arg(tree.join("bin")));
    let archive = folder.join("tools.tar.gz");
    succeeds(
        Command::new("tar").arg("-czf").arg(&archive).arg("-C").arg(&tree).args(["bin", "dev"]),
    );

    let server = file_server(lab, &folder, "10.77.0.1:8099", &["--etag"]);
    (server, template(&sum("sha512sum", &qcow2), &sum("sha256sum", &archive)))
}

fn template(qcow2_sha512: &str, archive_sha256: &str) -> String {
    format!(
        r#"version: "0.1"
name: everything
global_timeout: 3600
tasks:
- name: everything
  worker: "{{{{.device_1}}}}"
  actions:
{WIPES}  - name: write
    image: quay.io/tinkerbell/actions/qemuimg2disk:latest
    timeout: 600
    environment:
      IMG_URL: http://10.77.0.1:8099/tiny.qcow2
      IMG_SHA512: {qcow2_sha512}
      DEST_DISK: serialNumber=TINBOX1
      VERIFY_READ_BACK: true
  - name: unpack
    image: quay.io/tinkerbell/actions/archive2disk:latest
    timeout: 300
    environment:
      ARCHIVE_URL: http://10.77.0.1:8099/tools.tar.gz
      ARCHIVE_TYPE: targz
      TARFILE_CHECKSUM: sha256:{archive_sha256}
      DEST_DISK: /dev/vda1
      FS_TYPE: ext4
      DEST_PATH: /
{LOADER}  - name: third-time
    image: quay.io/tinkerbell/actions/cexec:latest
    timeout: 120
    retries: 2
    environment:
      BLOCK_DEVICE: /dev/vda1
      FS_TYPE: ext4
      CHROOT: y
      DEFAULT_INTERPRETER: /bin/busybox sh -c
      CMD_LINE: >-
        echo again >>/tries; tries=$(/bin/busybox wc -l </tries); echo "this is try $tries";
        [ "$tries" -eq 3 ] && echo http://10.77.0.1:50061 >/etc/metadata_url
  - name: reboot
    image: quay.io/tinkerbell/actions/reboot:latest
    timeout: 60
"#
    )
}

#[test]
fn a_disk_is_erased_filled_and_mended_by_actions() {
    let (nvme_disk, sata_disk) = (Some(256 << 20), Some(64 << 20));
    let nuc = NucConfig { nvme_disk, sata_disk, ..NucConfig::bios() };
    let lab = Lab::start(LabConfig::new(RackConfig::new("actions").nuc(nuc))).unwrap();
    lab.push_nuc(1, "ssh-ed25519 AAAA scenario", "#cloud-config\n").unwrap();
    let left = |path: &Path, at: u64| {
        let mut disk = File::options().read(true).write(true).open(path).unwrap();
        disk.seek(SeekFrom::Start(at)).unwrap();
        disk.write_all(SECRET).unwrap();
    };
    left(lab.rack.nuc(1).disk(), SECRET_AT);
    left(&lab.rack.nuc(1).nvme_disk(), 0);
    let (_server, template) = served(&lab);
    let file = lab.file("everything.yaml", &template).unwrap();
    lab.tinbox(&["template", "create", "--file", file.to_str().unwrap()]).unwrap();

    let workflow = lab.create_workflow("everything", 1).unwrap();
    let view = lab.wait_success(&workflow, SMALL).unwrap();
    wait_small_system(&lab);
    assert!(view.message("wipe").contains("TINBOX1"), "a record: {:?}", view.actions());
    let record = view.message("wipe-nvme");
    for words in [
        "wiped 256 MiB of /dev/nvme0n1, model QEMU NVMe Ctrl, serial TINBOX1-NVME",
        "(Format NVM with user data erase); method nvme-format, 268435456 bytes in ",
        "samples of 64 KiB read back as zeros",
    ] {
        assert!(record.contains(words), "{record:?} does not say {words:?}");
    }
    let record = view.message("wipe-sata");
    assert!(record.contains("method auto: zero, because it has no ATA security"), "{record}");
    let loader = view.message("loader");
    assert!(loader.starts_with("installed GRUB (i386-pc) on /dev/vda"), "{loader}");
    assert!(view.message("write").contains("read back and compared"), "{:?}", view.actions());
    let serial = lab.rack.nuc(1).serial();
    serial.wait_for("said=this is try 3", SMALL).unwrap();
    let log = lab.tinbox(&["machine", "log", "nuc1"]).unwrap();
    assert!(
        log.lines().any(|line| line.contains("action") && line.contains("this is try 3")),
        "{log}"
    );
    assert_eq!(switched_on(&lab), 1, "{ONE_START}");
    for (path, at) in [(lab.rack.nuc(1).disk(), SECRET_AT), (&lab.rack.nuc(1).nvme_disk(), 0)] {
        let mut disk = File::open(path).unwrap();
        let mut left = vec![1; SECRET.len()];
        disk.seek(SeekFrom::Start(at)).unwrap();
        disk.read_exact(&mut left).unwrap();
        assert!(left.iter().all(|byte| *byte == 0), "what was on {} is gone", path.display());
    }
    lab.rack.succeed();
}

#[test]
fn an_image_is_stopped_half_way_and_begun_again() {
    let mut server = None;
    let lab = small_lab("cancelled", NucConfig::bios(), |lab| {
        // The transfer would take an hour: only a canceled action is ready for the next attempt in
        // time.
        let (process, image) = bad_server(lab, &["--rate", "5000"]);
        server = Some(process);
        image
    });
    let workflow = lab.create_workflow("install", 1).unwrap();
    let running = |view: &WorkflowView| view.action("stream-image") == "RUNNING";
    lab.wait_workflow(&workflow, "to write its image", SMALL, running).unwrap();
    lab.tinbox(&["workflow", "cancel", &workflow, "--yes"]).unwrap();
    let view = lab.wait_workflow(&workflow, "to end", SMALL, WorkflowView::ended).unwrap();
    assert_eq!(view.state(), "FAILED");
    assert_eq!(view.action("reboot"), "PENDING", "nothing after it ran");
    assert!(lab.story("nuc1").unwrap().contains("canceled"), "{}", lab.story("nuc1").unwrap());

    drop(server.take());
    let (_fast, _) = bad_server(&lab, &[]);
    lab.tinbox(&["workflow", "retry", &workflow]).unwrap();
    lab.wait_success(&workflow, SMALL).unwrap();
    wait_small_system(&lab);
    assert_eq!(switched_on(&lab), 1, "the same agent did both");
    lab.rack.succeed();
}
