//! Tests the actions on block devices (loop devices over files). Need root.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::sync::Arc;

use imaging::{Meter, stream};

use crate::loops::{Loop, act, file_environment, inspect, run};
use crate::tinbox::Files;

#[tokio::test(flavor = "multi_thread")]
async fn image2disk_writes_past_the_cache_and_leaves_holes() {
    let disk = Loop::new(64 << 20);
    File::options().write(true).open(&disk.path).unwrap().write_all(&vec![0xee; 64 << 20]).unwrap();
    let mut image = vec![0; 40 << 20];
    image[..1000].fill(0xcd);
    image[30 << 20..31 << 20].fill(0xab);
    // The length is not a multiple of the sector size.
    image.truncate((40 << 20) - 100);
    let files = Files::start(zstd::encode_all(image.as_slice(), 1).unwrap()).await;
    let environment = [
        disk.environment("DEST_DISK"),
        format!("IMG_URL={}", files.url()),
        format!("IMG_SHA256=sha256:{}", files.sha256()),
    ];
    act("image2disk", &environment).await.unwrap();
    let (bytes, stored) = disk.read();
    assert!(bytes[..image.len()] == image);
    assert_eq!(bytes[image.len()..40 << 20], [0; 100], "the last sector is padded with zeros");
    let rest = &bytes[40 << 20..63 << 20];
    assert!(rest.iter().all(|byte| *byte == 0xee), "past the image is not touched");
    assert!(bytes[63 << 20..].iter().all(|byte| *byte == 0), "but for marks at the end");
    assert!(stored < 32 << 20, "zeros were stored: {stored}");
}

#[tokio::test(flavor = "multi_thread")]
async fn image2disk_refuses_what_it_must_not_write() {
    let disk = Loop::new(8 << 20);
    let files = Files::start(vec![1; 9 << 20]).await;
    let url = format!("IMG_URL={}", files.url());
    let error = act("image2disk", &[url.clone(), disk.environment("DEST_DISK")]).await.unwrap_err();
    let path = disk.path.display();
    let expected = format!("the image {} is larger than {path}, which has 8.0 MiB", files.url());
    assert_eq!(error, expected);
    assert!(disk.read().0[..4 << 20].iter().all(|byte| *byte == 0), "nothing there boots");

    let file = tempfile::NamedTempFile::new().unwrap();
    let target = format!("DEST_DISK={}", file.path().display());
    let error = act("image2disk", &[url.clone(), target]).await.unwrap_err();
    assert!(error.ends_with("is not a block device"), "{error}");

    run("mkfs.ext4", &["-q", disk.path.to_str().unwrap()]);
    let mount = tempfile::tempdir().unwrap();
    let place = mount.path().to_str().unwrap();
    run("mount", &[disk.path.to_str().unwrap(), place]);
    let busy = act("image2disk", &[url, disk.environment("DEST_DISK")]).await;
    run("umount", &[place]);
    assert_eq!(
        busy.unwrap_err(),
        format!("{path} is in use: it, or a partition of it, is mounted")
    );
    run("fsck.ext4", &["-fn", disk.path.to_str().unwrap()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn writefile_makes_folders_files_owners_and_modes() {
    let disk = Loop::new(32 << 20);
    run("mkfs.ext4", &["-q", disk.path.to_str().unwrap()]);
    let path = "DEST_PATH=/etc/cloud/cloud.cfg.d/10_tinkerbell.cfg";
    let settings = ["UID=12", "GID=34", "MODE=0600", "DIRMODE=0750"];
    for contents in ["CONTENTS=a much longer text that must not remain", "CONTENTS=key: a=b\n"] {
        let mut more = vec![path, contents];
        more.extend(settings);
        act("writefile", &file_environment(&disk, "ext4", &more)).await.unwrap();
    }
    inspect(&disk.path, |root| {
        let file = root.join("etc/cloud/cloud.cfg.d/10_tinkerbell.cfg");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "key: a=b\n");
        let metadata = file.metadata().unwrap();
        assert_eq!((metadata.uid(), metadata.gid(), metadata.mode() & 0o7777), (12, 34, 0o600));
        let metadata = root.join("etc/cloud").metadata().unwrap();
        assert_eq!((metadata.uid(), metadata.gid(), metadata.mode() & 0o7777), (12, 34, 0o750));
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn writefile_stays_on_its_filesystem() {
    let disk = Loop::new(32 << 20);
    run("mkfs.ext4", &["-q", disk.path.to_str().unwrap()]);
    let outside = tempfile::tempdir().unwrap();
    inspect(&disk.path, |root| {
        std::os::unix::fs::symlink(outside.path(), root.join("absolute")).unwrap();
        let dots = format!("../../../../../../..{}", outside.path().display());
        std::os::unix::fs::symlink(dots, root.join("dots")).unwrap();
        std::fs::create_dir_all(root.join(outside.path().strip_prefix("/").unwrap())).unwrap();
    });
    for path in ["DEST_PATH=/absolute/trap", "DEST_PATH=/dots/trap-of-dots"] {
        let more = [path, "CONTENTS=x"];
        act("writefile", &file_environment(&disk, "ext4", &more)).await.unwrap();
    }
    assert!(outside.path().read_dir().unwrap().next().is_none(), "followed out of the disk");
    inspect(&disk.path, |root| {
        let inside = root.join(outside.path().strip_prefix("/").unwrap());
        for name in ["trap", "trap-of-dots"] {
            assert!(inside.join(name).exists(), "{name} is followed within the disk");
        }
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn writefile_says_what_it_cannot_mount() {
    let disk = Loop::new(8 << 20);
    let more = ["DEST_PATH=/a", "CONTENTS=x"];
    let error = act("writefile", &file_environment(&disk, "nosuchfs", &more)).await.unwrap_err();
    assert_eq!(
        error,
        "cannot mount nosuchfs: the agent's kernel supports only ext4, xfs, btrfs and vfat"
    );
    let error = act("writefile", &file_environment(&disk, "ext4", &more)).await.unwrap_err();
    assert!(error.starts_with(&format!("cannot mount {} as ext4", disk.path.display())), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn disk_wipe_leaves_nothing() {
    let disk = Loop::new((48 << 20) + 512);
    File::options().write(true).open(&disk.path).unwrap().write_all(&vec![0xee; 48 << 20]).unwrap();
    let device = File::options().write(true).open(&disk.path).unwrap();
    device.write_all_at(&[0xee; 512], 48 << 20).unwrap();
    drop(device);
    let message = act("disk-wipe", &[disk.environment("BLOCK_DEVICE")]).await.unwrap();
    assert!(message.starts_with("wiped 48 MiB of /dev/loop"), "{message}");
    assert!(message.contains("; method zero, 50332160 bytes in "), "{message}");
    assert!(message.ends_with(", 257 samples of 64 KiB read back as zeros"), "{message}");
    assert!(disk.read().0.iter().all(|byte| *byte == 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn disk_wipe_discards_what_can_be_discarded() {
    let disk = Loop::new(16 << 20);
    File::options().write(true).open(&disk.path).unwrap().write_all(&vec![0xee; 16 << 20]).unwrap();
    let environment = [disk.environment("BLOCK_DEVICE"), "WIPE_METHOD=discard".to_owned()];
    let message = act("disk-wipe", &environment).await.unwrap();
    assert!(message.contains("discarded by the device"), "{message}");
    let (bytes, stored) = disk.read();
    assert!(bytes.iter().all(|byte| *byte == 0) && stored < 1 << 20, "{stored}");
}

#[tokio::test(flavor = "multi_thread")]
async fn disk_wipe_takes_what_the_device_has() {
    let disk = Loop::new(16 << 20);
    File::options().write(true).open(&disk.path).unwrap().write_all(&vec![0xee; 16 << 20]).unwrap();
    let by = |method: &str| [disk.environment("BLOCK_DEVICE"), format!("WIPE_METHOD={method}")];
    for (method, kind) in
        [("nvme-format", "NVMe"), ("nvme-sanitize", "NVMe"), ("ata-secure-erase", "ATA")]
    {
        let error = act("disk-wipe", &by(method)).await.unwrap_err();
        let expected = format!(
            "cannot erase {}: it is a disk of another kind, not an {kind} disk",
            disk.path.display()
        );
        assert_eq!(error, expected);
    }
    assert_eq!(disk.read().0, vec![0xee; 16 << 20], "a refusal touches nothing");
    let message = act("disk-wipe", &by("auto")).await.unwrap();
    let why = "method auto: zero, because it is a disk of another kind, which has no erase command";
    assert!(message.contains(why), "{message}");
    assert!(disk.read().0.iter().all(|byte| *byte == 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_preserved_disk_is_not_written_by_anything() {
    let disk = Loop::new(8 << 20);
    run("mkfs.ext4", &["-q", disk.path.to_str().unwrap()]);
    let (before, _) = disk.read();
    let files = Files::start(vec![1; 1000]).await;
    imaging::preserve::set(imaging::preserve::parse(disk.path.to_str().unwrap()).unwrap());
    let name = disk.path.file_name().unwrap().to_str().unwrap();
    let expected = format!("refused to write /dev/{name}: disk {name} is preserved");
    let (url, target) = (format!("IMG_URL={}", files.url()), disk.environment("DEST_DISK"));
    let (wiped, target) = (disk.environment("BLOCK_DEVICE"), target);
    let mut refusals = Vec::new();
    for method in ["auto", "zero", "discard", "nvme-format", "nvme-sanitize", "ata-secure-erase"] {
        let environment = [wiped.clone(), format!("WIPE_METHOD={method}")];
        refusals.push(act("disk-wipe", &environment).await);
    }
    refusals.extend([
        act("image2disk", &[url, target]).await,
        act("disk-wipe", &[wiped]).await,
        act("writefile", &file_environment(&disk, "ext4", &["DEST_PATH=/a", "CONTENTS=x"])).await,
    ]);
    imaging::preserve::set(Vec::new());
    for refusal in refusals {
        assert_eq!(refusal.unwrap_err(), expected);
    }
    assert!(disk.read().0 == before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_fails_on_the_way_is_named() {
    // The backing file's file system is full at 60 %; then writes to the loop device fail.
    let disk = Loop::on_small_filesystem(32 << 20, 20 << 20);
    let noise: Vec<u8> = (0..30_u32 << 20).map(|n| (n ^ (n >> 7) ^ (n >> 15)) as u8 | 1).collect();
    let files = Files::start(zstd::encode_all(noise.as_slice(), 1).unwrap()).await;
    let url = format!("IMG_URL={}", files.url());
    let error = act("image2disk", &[url, disk.environment("DEST_DISK")]).await.unwrap_err();
    let path = disk.path.display();
    assert!(error.starts_with(&format!("cannot write {path} at ")), "{error}");
    let mut head = vec![0; 4 << 20];
    File::open(&disk.path).unwrap().read_exact(&mut head).unwrap();
    assert!(head.iter().all(|byte| *byte == 0), "nothing there boots");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_disk_is_waited_for_and_then_named() {
    let image = stream::Image {
        url: "http://127.0.0.1:1/x".parse().unwrap(),
        proof: None,
        compressed: false,
        read_back: false,
        disk: "/dev/no-such-disk".into(),
        accept: stream::Accept::BlockDevices,
        timeouts: stream::Timeouts::DEFAULT,
    };
    let error = stream::write_image(&image, &Arc::new(Meter::default())).await.unwrap_err();
    assert_eq!(error.to_string(), "/dev/no-such-disk did not appear within 10 s");
}
