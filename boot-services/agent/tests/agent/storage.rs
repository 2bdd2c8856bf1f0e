//! Tests partitions and file systems with programs of the tools image, on loop devices. Arrays and
//! volumes are tested in the scenarios, because they need kernel support.

use std::path::{Path, PathBuf};

use imaging::tools::{self, Source};

use crate::loops::{Loop, act, inspect, run};
use crate::tinbox::Files;

/// Starts an HTTP server with the tools image, which is built if not cached.
pub async fn tools() -> Files {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../image/tools/build.sh");
    let files = Files::start(std::fs::read(run(script, &[])).unwrap()).await;
    let checksum = format!("sha256:{}", files.sha256()).parse().unwrap();
    tools::set(Some(Source { url: files.url().parse().unwrap(), checksum }));
    files
}

pub fn part(disk: &Loop, number: u32) -> PathBuf {
    format!("{}p{number}", disk.path.display()).into()
}

/// Returns the file system type of a device, by blkid of this machine.
fn kind(device: &Path) -> String {
    run("blkid", &["-p", "-s", "TYPE", "-o", "value", device.to_str().unwrap()])
}

fn described(disk: &Loop, wipe: bool, partitions: &str, filesystems: &[(u32, &str)]) -> String {
    let device = disk.path.display();
    let filesystems: Vec<_> = filesystems
        .iter()
        .map(|(number, format)| {
            let part = part(disk, *number);
            format!("{{mount: {{device: {}, format: {format}}}}}", part.display())
        })
        .collect();
    format!(
        "STORAGE=disks: [{{device: {device}, wipe_table: {wipe}, partitions: [{partitions}]}}]\n\
         filesystems: [{}]",
        filesystems.join(", ")
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_becomes_what_is_described_again_and_again() {
    let disk = Loop::with_partitions(1 << 30);
    let files = tools().await;
    let partitions = "{label: EFI, size: 64MiB}, {label: SWAP, size: 131072}, \
                      {label: ROOT, size: 400MiB}, {label: DATA}";
    let systems = [(1, "vfat"), (2, "swap"), (3, "xfs"), (4, "ext4")];
    let all = described(&disk, true, partitions, &systems);
    for _ in 0..2 {
        let summary = act("storage", std::slice::from_ref(&all)).await.unwrap();
        assert!(
            summary.starts_with("made 4 partitions on 1 disk; made vfat on /dev/loop"),
            "{summary}"
        );
        for (number, format) in systems {
            assert_eq!(kind(&part(&disk, number)), format);
        }
        inspect(&part(&disk, 4), |root| assert!(root.join("lost+found").exists()));
    }
    assert!(files.requests() <= 1, "fetched once: {}", files.requests());
    let table = run("sfdisk", &["--dump", disk.path.to_str().unwrap()]);
    assert!(table.contains("C12A7328-F81F-11D2-BA4B-00C93EC93B3B, uuid="), "{table}");
    assert!(table.contains("name=\"SWAP\""), "{table}");

    // Without permission to wipe, an identical table is kept with its content, and another one is
    // refused.
    let same = described(&disk, false, partitions, &[]);
    act("storage", &[same]).await.unwrap();
    assert_eq!(kind(&part(&disk, 4)), "ext4");
    let other = described(&disk, false, "{size: 8MiB}", &[]);
    let error = act("storage", &[other]).await.unwrap_err();
    assert!(error.ends_with("of 4 partitions; wipe_table: true replaces it"), "{error}");

    // Nothing is changed while a part of the disk is in use, or while a policy preserves it.
    let mount = tempfile::tempdir().unwrap();
    let place = mount.path().to_str().unwrap();
    run("mount", &[part(&disk, 4).to_str().unwrap(), place]);
    let busy = act("storage", std::slice::from_ref(&all)).await;
    run("umount", &[place]);
    assert!(busy.unwrap_err().ends_with("is in use: it, or a partition of it, is mounted"));
    imaging::preserve::set(imaging::preserve::parse(disk.path.to_str().unwrap()).unwrap());
    let kept = act("storage", &[all]).await;
    imaging::preserve::set(Vec::new());
    assert!(kept.unwrap_err().ends_with("is preserved"));
    assert_eq!(kind(&part(&disk, 4)), "ext4");
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    assert!(!mounts.contains("/run/tinbox-agent"), "{mounts}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_partition_grows_with_what_is_in_it() {
    for (format, size) in [("ext4", 64), ("xfs", 320), ("btrfs", 128)] {
        let disk = Loop::with_partitions(768 << 20);
        let _files = tools().await;
        let partitions = format!("{{label: BIOS, size: 4096}}, {{size: {size}MiB}}");
        let small = described(&disk, true, &partitions, &[(2, format)]);
        act("storage", &[small]).await.unwrap();
        let summary = act("growpart", &[disk.environment("DEST_DISK")]).await.unwrap();
        let expected = format!(
            "grew {} from {size} MiB to 764 MiB, with its {format}",
            part(&disk, 2).display()
        );
        assert_eq!(summary, expected);
        inspect(&part(&disk, 2), |root| {
            let stat = rustix::fs::statvfs(root).unwrap();
            let bytes = stat.f_blocks * stat.f_frsize;
            assert!(bytes > 600 << 20, "{format} has {bytes}");
        });
        let again = act("growpart", &[disk.environment("DEST_DISK")]).await.unwrap();
        assert!(again.contains("ends where /dev/loop"), "{again}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_missing_or_wrong_is_said() {
    let disk = Loop::with_partitions(64 << 20);
    let described = described(&disk, true, "{size: 8MiB}", &[(1, "xfs")]);
    tools::set(None);
    let error = act("storage", std::slice::from_ref(&described)).await.unwrap_err();
    let expected = "the disk tools are missing: the agent's OS has no tools image";
    assert!(error.starts_with(expected), "{error}");

    let other = Files::start(vec![1; 5000]).await;
    let checksum = format!("sha256:{}", "00".repeat(32)).parse().unwrap();
    tools::set(Some(Source { url: other.url().parse().unwrap(), checksum }));
    let error = act("storage", std::slice::from_ref(&described)).await.unwrap_err();
    assert!(error.starts_with("sha256 of the image is "), "{error}");

    let _files = tools().await;
    let error = act("storage", &[described]).await.unwrap_err();
    assert!(error.starts_with("mkfs.xfs ended with exit status: 1: "), "{error}");
}
