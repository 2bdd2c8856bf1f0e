use std::fs::{self, File};
use std::io::Cursor;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use sha2::{Digest as _, Sha256};

use super::{Failure, Writer};
use crate::map::{Map, Part};

const SIZE: usize = 3 << 20;

/// Returns an image without repeated blocks.
fn image() -> Vec<u8> {
    (0..SIZE as u32 / 4).flat_map(u32::to_le_bytes).collect()
}

fn part(image: &[u8], from: usize, to: usize) -> Part {
    Part { bytes: from as u64..to as u64, sum: Some(Sha256::digest(&image[from..to]).into()) }
}

fn disk(folder: &Path, size: usize) -> File {
    let path = folder.join("disk");
    fs::write(&path, vec![0xa5; size]).unwrap();
    File::options().read(true).write(true).open(path).unwrap()
}

fn written(image: &[u8], map: &Map, size: usize, stop: bool) -> (Result<(), Failure>, Vec<u8>) {
    let folder = tempfile::tempdir().unwrap();
    let (disk, stop) = (disk(folder.path(), size), AtomicBool::new(stop));
    let writer = Writer { disk: &disk, size: size as u64, stop: &stop };
    let whole = writer.write(&mut Cursor::new(image), map).and_then(|(map, head)| {
        writer.compare(&map, &head, |_| ())?;
        writer.finish(&head)
    });
    (whole, fs::read(folder.path().join("disk")).unwrap())
}

#[test]
fn what_the_map_names_is_on_the_disk() {
    let image = image();
    let (whole, disk) = written(&image, &Map::whole(None), SIZE + 512, false);
    whole.unwrap();
    assert!(disk[..SIZE] == image && disk[SIZE..] == [0xa5; 512]);

    // One part lies across the end of what is written last.
    let (first, second) = ((4096, 1 << 20 | 4096), (2 << 20, SIZE - 4096));
    let parts = vec![part(&image, first.0, first.1), part(&image, second.0, second.1)];
    let (whole, disk) = written(&image, &Map { size: None, parts }, SIZE, false);
    whole.unwrap();
    for (from, to) in [first, second] {
        assert!(disk[from..to] == image[from..to], "{from}");
    }
    assert_eq!((disk[0], disk[first.1], disk[SIZE - 1]), (0, 0xa5, 0xa5));
}

#[test]
fn former_bytes_are_gone_where_the_image_writes_none() {
    let (folder, image, stop) = (tempfile::tempdir().unwrap(), image(), AtomicBool::new(false));
    let disk = disk(folder.path(), SIZE);
    let writer = Writer { disk: &disk, size: SIZE as u64, stop: &stop };
    assert!(writer.discard(), "a file discards");
    let parts = vec![part(&image, 0, 4096)];
    let (map, head) = writer.write(&mut Cursor::new(&image), &Map { size: None, parts }).unwrap();
    writer.compare(&map, &head, |_| ()).unwrap();
    writer.finish(&head).unwrap();
    let found = fs::read(folder.path().join("disk")).unwrap();
    assert!(found[..4096] == image[..4096] && found[4096..].iter().all(|byte| *byte == 0));
    let full = File::open("/dev/null").unwrap();
    assert!(!Writer { disk: &full, size: 1, stop: &stop }.discard(), "a device that cannot");
}

#[test]
fn half_an_image_leaves_no_disk_that_starts() {
    let image = image();
    let good = part(&image, 0, SIZE);
    let wrong = Map { size: None, parts: vec![Part { sum: Some([7; 32]), ..good.clone() }] };
    let good = Map { size: None, parts: vec![good] };
    let table: [(&[u8], &Map, usize, bool, &str); 4] = [
        (&image, &wrong, SIZE, false, "damaged at byte 0"),
        (&image[..SIZE - 1], &good, SIZE, false, "damaged at byte 0"),
        (&image, &good, SIZE - 1, false, "larger than the disk"),
        (&image, &good, SIZE, true, "the copy was interrupted"),
    ];
    for (image, map, size, stop, why) in table {
        let (whole, disk) = written(image, map, size, stop);
        let message = whole.unwrap_err().to_string();
        assert!(message.contains(why), "{message}");
        assert!(disk[..1 << 20].iter().all(|byte| *byte == 0), "{why}: it may start");
    }
}

#[test]
fn a_disk_that_forgets_is_found_out() {
    let (folder, image) = (tempfile::tempdir().unwrap(), image());
    let (disk, stop) = (disk(folder.path(), SIZE), AtomicBool::new(false));
    let writer = Writer { disk: &disk, size: SIZE as u64, stop: &stop };
    let (map, head) = writer.write(&mut Cursor::new(&image), &Map::whole(None)).unwrap();
    writer.compare(&map, &head, |_| ()).unwrap();
    disk.write_all_at(b"x", 2 << 20).unwrap();
    let other = writer.compare(&map, &head, |_| ()).unwrap_err();
    assert!(matches!(other, Failure::Differs(0)), "{other}");
    stop.store(true, Ordering::Relaxed);
    let stopped = writer.compare(&map, &head, |_| ()).unwrap_err();
    assert!(matches!(stopped, Failure::Stopped), "{stopped}");
    let mut start = vec![1; 1 << 20];
    disk.read_exact_at(&mut start, 0).unwrap();
    assert!(start.iter().all(|byte| *byte == 0), "it may start");
}
