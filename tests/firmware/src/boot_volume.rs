//! The FAT volume `TINBOX` of a disk image, accessed as in another computer.

use std::io::{self, Write as _};
use std::path::Path;
use std::process::Command;

use image::disk::Part;

use crate::run;

/// The volume of `disk` in the syntax of mtools.
pub fn of(disk: &Path) -> String {
    format!("{}@@{}", disk.display(), Part::Boot.offset())
}

/// Writes a file to the volume, and replaces an existing one.
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

/// Returns the text of a file on the volume.
///
/// # Errors
/// The file does not exist.
pub fn read(disk: &Path, name: &str) -> io::Result<String> {
    run(Command::new("mtype").args(["-i", &of(disk), &format!("::{name}")]))
}
