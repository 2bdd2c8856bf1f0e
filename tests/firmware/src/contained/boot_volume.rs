//! The boot volume without the kernel's FAT driver: its files are in memory while the box runs.
//! When the box is off, mtools writes them to the disk's FAT.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::boot_volume;
use crate::run;

/// Folders and files below a folder, by relative path: the content of a file, `None` for a folder.
pub type Tree = BTreeMap<PathBuf, Option<Vec<u8>>>;

/// Copies the volume's files into `folder`.
///
/// # Errors
/// The disk has no such volume.
pub fn take_out(disk: &Path, folder: &Path) -> io::Result<()> {
    let mut copy = Command::new("mcopy");
    copy.args(["-s", "-n", "-m", "-i", &boot_volume::of(disk), "::/"]).arg(folder);
    run(&mut copy).map(drop)
}

/// Makes the volume on `disk` equal to `folder`. `work` is an empty folder.
///
/// # Errors
/// The volume is full.
pub fn put_back(folder: &Path, disk: &Path, work: &Path) -> io::Result<()> {
    take_out(disk, work)?;
    let (before, now) = (tree(work)?, tree(folder)?);
    let volume = boot_volume::of(disk);
    let place = |path: &Path| format!("::{}", path.display());
    for path in before.keys().filter(|path| !now.contains_key(*path)).rev() {
        let program = if matches!(before.get(path), Some(None)) { "mrd" } else { "mdel" };
        run(Command::new(program).args(["-i", &volume, &place(path)]))?;
    }
    for (path, content) in &now {
        match (content, before.get(path)) {
            (_, Some(same)) if same == content => {}
            (None, _) => {
                run(Command::new("mmd").args(["-i", &volume, &place(path)]))?;
            }
            (Some(content), _) => boot_volume::put(disk, &path.to_string_lossy(), content)?,
        }
    }
    Ok(())
}

/// All files and folders below `folder`.
///
/// # Errors
/// The volume cannot be read.
pub fn tree(folder: &Path) -> io::Result<Tree> {
    let mut found = Tree::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next)? {
            let path = entry?.path();
            let content = if path.is_dir() { None } else { Some(fs::read(&path)?) };
            if content.is_none() {
                folders.push(path.clone());
            }
            let name = path.strip_prefix(folder).map_err(io::Error::other)?;
            found.insert(name.to_owned(), content);
        }
    }
    Ok(found)
}
