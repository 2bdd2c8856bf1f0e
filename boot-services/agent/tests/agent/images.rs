//! Tests images that do not fit the disk, and the removal of the disk's old content.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

use crate::loops::{Loop, act, run};
use crate::tinbox::Files;

const MIB: usize = 1 << 20;

fn fill(disk: &Loop, size: usize) {
    let file = File::options().write(true).open(&disk.path).unwrap();
    file.write_all_at(&vec![0xee; size], 0).unwrap();
    file.sync_all().unwrap();
}

async fn write(disk: &Loop, image: Vec<u8>) -> Result<String, String> {
    let files = Files::start(image).await;
    let url = format!("IMG_URL={}", files.url());
    act("image2disk", &[url, disk.environment("DEST_DISK")]).await
}

/// Builds an image of 8 MiB with the bytes of `marks` at their offsets.
fn image(marks: &[(usize, &[u8])]) -> Vec<u8> {
    let mut image = vec![0; 8 * MIB];
    for (at, bytes) in marks {
        image[*at..*at + bytes.len()].copy_from_slice(bytes);
    }
    image
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archive_is_no_image_and_nothing_is_written() {
    let disk = Loop::new(16 << 20);
    fill(&disk, 16 * MIB);
    let tar = image(&[(0, b"disk.raw\0"), (257, b"ustar\x0000")]);
    for served in [tar.clone(), zstd::encode_all(tar.as_slice(), 1).unwrap()] {
        let error = write(&disk, served).await.unwrap_err();
        assert!(error.contains("is a tar archive"), "{error}");
        assert!(disk.read().0.iter().all(|byte| *byte == 0xee), "nothing is written");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_for_other_sectors_is_refused_and_nothing_is_written() {
    for (mark, sectors) in [(512, 4096), (4096, 512)] {
        let disk = Loop::with_sectors(16 << 20, sectors);
        fill(&disk, 16 * MIB);
        let error = write(&disk, image(&[(mark, b"EFI PART")])).await.unwrap_err();
        let words = format!("is for disks with {mark}-byte sectors");
        assert!(error.contains(&words) && error.contains(&sectors.to_string()), "{error}");
        assert!(disk.read().0.iter().all(|byte| *byte == 0xee), "nothing is written");
    }
    // A DOS table does not state its sector size; the image's length shows it. The start of the
    // disk stays empty.
    let disk = Loop::with_sectors(64 << 20, 4096);
    let mut entry = [0; 16];
    entry[4] = 0x83;
    entry[8..12].copy_from_slice(&2048_u32.to_le_bytes());
    entry[12..16].copy_from_slice(&8192_u32.to_le_bytes());
    let error = write(&disk, image(&[(446, &entry), (510, b"\x55\xaa")])).await.unwrap_err();
    assert!(error.contains("is for disks with 512-byte sectors"), "{error}");
    assert!(disk.read().0[..MIB].iter().all(|byte| *byte == 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn marks_at_the_end_of_the_disk_are_cleared() {
    let size = 64 * MIB;
    let disk = Loop::new(size as u64);
    fill(&disk, size);
    let path = disk.path.to_str().unwrap();
    run("sgdisk", &["--clear", "--new=1:2048:+1M", path]);
    // md 0.90 begins 64 KiB before the last whole 64 KiB, and md 1.0 8 KiB before the end.
    let file = File::options().write(true).open(&disk.path).unwrap();
    for at in [size - (64 << 10), size - (8 << 10)] {
        file.write_all_at(b"\xfc\x4e\x2b\xa9", at as u64).unwrap();
    }
    file.sync_all().unwrap();
    let mut entry = [0; 16];
    entry[4] = 0x83;
    entry[8..12].copy_from_slice(&2048_u32.to_le_bytes());
    entry[12..16].copy_from_slice(&2048_u32.to_le_bytes());
    write(&disk, image(&[(446, &entry), (510, b"\x55\xaa")])).await.unwrap();
    assert_eq!(run("wipefs", &["--noheadings", "--output", "TYPE", path]), "dos");
    let (bytes, _) = disk.read();
    assert!(bytes[size - MIB..].iter().all(|byte| *byte == 0));
    assert!(bytes[8 * MIB..size - MIB].iter().all(|byte| *byte == 0xee), "no more than that");
}
