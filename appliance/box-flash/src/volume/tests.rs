//! Compares with dosfstools and mtools, independent implementations of FAT.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpt::partition::Partition;
use uuid::Uuid;

use super::{Failure, configure};

const MIB: u64 = 1 << 20;
/// Offset of the boot volume.
const AT: u64 = MIB;
/// Bytes of the boot volume: enough for FAT32, as on the box.
const SIZE: u64 = 40 * MIB;

fn run(command: &mut Command) -> String {
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    let output = command.env("PATH", path).env("MTOOLS_SKIP_CHECK", "1").output().unwrap();
    let message = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{command:?}: {message}");
    message
}

/// Creates a disk with one partition `name`, formatted as by image/src/disk/boot_volume.rs.
fn disk(folder: &Path, name: &str) -> PathBuf {
    let path = folder.join("disk");
    let mut file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
    file.set_len(AT + SIZE + MIB).unwrap();
    let config = gpt::GptConfig::new().writable(true);
    let mut table = config.create_from_device(&mut file, None).unwrap();
    let entry = Partition {
        part_type_guid: gpt::partition_types::EFI,
        part_guid: Uuid::from_u128(7),
        first_lba: AT / 512,
        last_lba: (AT + SIZE) / 512 - 1,
        flags: 0,
        name: name.to_owned(),
    };
    table.update_partitions(BTreeMap::from([(1, entry)])).unwrap();
    table.write().unwrap();
    let volume = folder.join("volume");
    File::create(&volume).unwrap().set_len(SIZE).unwrap();
    run(Command::new("mkfs.fat").args(["-F", "32", "-s", "1", "-n", "TINBOX"]).arg(&volume));
    file.write_all_at(&fs::read(&volume).unwrap(), AT).unwrap();
    path
}

/// Checks the volume of `disk` with fsck and returns its configuration.
fn judged(disk: &Path) -> String {
    let volume = disk.with_file_name("judged");
    let mut bytes = vec![0; SIZE as usize];
    File::open(disk).unwrap().read_exact_at(&mut bytes, AT).unwrap();
    fs::write(&volume, bytes).unwrap();
    let message = run(Command::new("fsck.fat").arg("-n").arg(&volume));
    assert!(!message.to_lowercase().contains("dirty"), "{message}");
    let listed = run(Command::new("mdir").args(["-b", "-i"]).arg(&volume).arg("::"));
    assert_eq!(listed.trim(), "::/box.toml");
    run(Command::new("mtype").arg("-i").arg(&volume).arg("::box.toml"))
}

#[test]
fn the_configuration_is_on_the_volume_and_replaces_another() {
    let folder = tempfile::tempdir().unwrap();
    let path = disk(folder.path(), "TINBOX");
    let file = File::options().read(true).write(true).open(&path).unwrap();
    let before = fs::read(&path).unwrap();
    // Several clusters, then less than one.
    for text in ["# a long one\r\n".repeat(300), "name = 'cellar'\n".to_owned(), String::new()] {
        configure(&file, &text).unwrap();
        assert_eq!(judged(&path), text);
    }
    let after = fs::read(&path).unwrap();
    let outside = |bytes: &[u8]| [&bytes[..AT as usize], &bytes[(AT + SIZE) as usize..]].concat();
    assert!(outside(&before) == outside(&after), "something beside the volume was written");
}

#[test]
fn a_disk_that_is_no_box_is_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = disk(folder.path(), "EFI");
    let open = || File::options().read(true).write(true).open(&path).unwrap();
    let before = fs::read(&path).unwrap();
    assert!(matches!(configure(&open(), "x"), Err(Failure::NoVolume)));
    assert!(before == fs::read(&path).unwrap());
    open().write_all_at(&[0; 2048], 0).unwrap();
    open().write_all_at(&[0; 64 << 10], AT + SIZE + MIB - (64 << 10)).unwrap();
    assert!(matches!(configure(&open(), "x"), Err(Failure::Table(_))));
    fs::write(&path, "").unwrap();
    assert!(matches!(configure(&open(), "x"), Err(Failure::Table(_))));
}

#[test]
fn a_volume_without_a_file_system_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let path = disk(folder.path(), "TINBOX");
    let file = File::options().read(true).write(true).open(&path).unwrap();
    file.write_all_at(&[0; 64 << 10], AT).unwrap();
    let message = configure(&file, "x").unwrap_err().to_string();
    assert!(message.starts_with("cannot write box.toml to the volume TINBOX"), "{message}");
}
