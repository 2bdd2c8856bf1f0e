//! The volume STATE of a disk image, with damage of a failing disk.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::Command;

use image::disk::Part;

use crate::run;

/// Bytes at the start of an ext4: superblock, group descriptors, and some of the blocks that they
/// describe.
const HEAD: usize = 4 << 20;
/// Size and offset of the superblock, in bytes.
const SUPERBLOCK: (usize, u64) = (1024, 1024);
/// Offset of the second group, which begins with copies of superblock and group descriptors.
const SECOND_GROUP: u64 = 128 << 20;

/// Overwrites only the first superblock, not its copies.
///
/// # Errors
/// The disk cannot be written.
pub fn lose_superblock(disk: &Path) -> io::Result<()> {
    overwrite(disk, SUPERBLOCK.1, SUPERBLOCK.0)
}

/// Overwrites the first 4 MiB of the volume, and 4 MiB at the copies in the second group.
///
/// # Errors
/// The disk cannot be written.
pub fn lose(disk: &Path) -> io::Result<()> {
    overwrite(disk, 0, HEAD)?;
    overwrite(disk, SECOND_GROUP, HEAD)
}

fn overwrite(disk: &Path, at: u64, count: usize) -> io::Result<()> {
    let disk = File::options().write(true).open(disk)?;
    disk.write_all_at(&vec![0xa5; count], Part::State.offset() + at)?;
    disk.sync_all()
}

/// Checks that the volume is a complete file system, without data that [`lose`] wrote.
///
/// # Errors
/// The output of `e2fsck`.
pub fn check(disk: &Path, work: &Path) -> io::Result<()> {
    let (bytes, file) = (content(disk)?, work.join("state"));
    if bytes.windows(SUPERBLOCK.0).step_by(SUPERBLOCK.0).any(|it| it.iter().all(|it| *it == 0xa5)) {
        return Err(io::Error::other("something of the old volume is there still"));
    }
    std::fs::write(&file, bytes)?;
    run(Command::new("e2fsck").arg("-fn").arg(&file)).map(drop)
}

/// The volume's bytes.
///
/// # Errors
/// The disk cannot be read.
pub fn content(disk: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(Part::State.size()).map_err(io::Error::other)?];
    File::open(disk)?.read_exact_at(&mut bytes, Part::State.offset())?;
    Ok(bytes)
}
