//! The FAT volume `TINBOX` of a disk image, as whoever puts the disk into another machine has it.

use std::io::{self, Write as _};
use std::path::Path;
use std::process::Command;

use image::disk::Part;

use crate::run;

/// The volume of `disk`, for mtools.
pub fn of(disk: &Path) -> String {
    format!("{}@@{}", disk.display(), Part::Boot.offset())
}

/// Puts a file there, in the place of another.
///
/// # Errors
/// The disk has no such volume, or the volume is full.
pub fn put(disk: &Path, name: &str, content: &[u8]) -> io::Result<()> {
    let mut file = tempfile::NamedTempFile::new()?;
    file.write_all(content)?;
    let mut copy = Command::new("mcopy");
    copy.args(["-o", "-i", &of(disk)]).arg(file.path()).arg(format!("::{name}"));
    run(&mut copy).map(drop)
}

/// What a file there says.
///
/// # Errors
/// It is not there.
pub fn read(disk: &Path, name: &str) -> io::Result<String> {
    run(Command::new("mtype").args(["-i", &of(disk), &format!("::{name}")]))
}
