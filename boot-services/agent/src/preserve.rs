//! Disks that no action may write: `tinbox.preserve` of the kernel command line, selectors parted
//! by `;`. The box writes it there; an action cannot take it back.
//!
//! A built-in action asks before it writes ([`check`]). A container does not ask: while one runs,
//! the kernel refuses writes to these disks, whoever makes them, and the container has none of
//! their device nodes ([`guard`]). That is against a wrong name and a script that wipes whatever it
//! finds. An image with all rights that means to undo it can.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::select::{Described, Selector, describe};
use crate::{Error, sys};

/// Where the kernel tells of its block devices.
const CLASS: &str = "/sys/class/block";
/// How far below a disk's own device the nodes are that take commands for it: `scsi_generic/sg0`.
const COMMANDS_DEPTH: u32 = 2;

/// Of this machine; set once as it starts.
static PRESERVED: Mutex<Vec<Selector>> = Mutex::new(Vec::new());

/// Understand the list.
///
/// # Errors
/// A sentence: a policy that is not understood must not be taken for none.
pub fn parse(text: &str) -> Result<Vec<Selector>, String> {
    let words = text.split(';').map(str::trim).filter(|word| !word.is_empty());
    words.map(Selector::parse).collect()
}

/// From now on nothing writes to these.
pub fn set(selectors: Vec<Selector>) {
    *PRESERVED.lock().unwrap_or_else(PoisonError::into_inner) = selectors;
}

/// Refuse `device` when it, or a disk that it lies on, is preserved.
pub fn check(device: &Path) -> Result<(), Error> {
    let preserved = PRESERVED.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if preserved.is_empty() {
        return Ok(());
    }
    let path = device.canonicalize().unwrap_or_else(|_| device.to_owned());
    let mut disks = Vec::new();
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    lies_on(Path::new(CLASS), &name.unwrap_or_default(), &mut disks);
    match disks.iter().find(|disk| preserved.iter().any(|selector| selector.fits(disk))) {
        Some(disk) => {
            let (path, disk) = (device.to_owned(), disk.name.clone());
            Err(Error::Preserved { path, disk })
        }
        None => Ok(()),
    }
}

/// From now on until this machine restarts the kernel refuses what would write to a preserved disk.
/// Returns the device nodes that reach one, some of which take commands that are no writes to the
/// kernel.
///
/// # Errors
/// [`Error::Io`]: one of them could not be protected.
pub fn guard() -> Result<Vec<PathBuf>, Error> {
    let preserved = PRESERVED.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if preserved.is_empty() {
        return Ok(Vec::new());
    }
    let is_preserved = |disk: &Described| preserved.iter().any(|selector| selector.fits(disk));
    let Nodes { block, mut commands } = Nodes::find(Path::new(CLASS), is_preserved);
    commands.extend(block.iter().cloned());
    for path in block {
        let doing = |error| Error::io(format!("protect {}", path.display()))(error);
        match File::open(&path) {
            Ok(disk) => sys::set_read_only(&disk).map_err(doing)?,
            // No node, so there is no way to it either.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(doing(error)),
        }
    }
    commands.retain(|path| path.exists());
    Ok(commands)
}

/// Device nodes that reach some disks.
#[derive(Debug, Default, PartialEq, Eq)]
struct Nodes {
    /// The disks, their partitions and what lies on them.
    block: Vec<PathBuf>,
    /// What takes commands for them.
    commands: Vec<PathBuf>,
}

impl Nodes {
    fn find(class: &Path, is_meant: impl Fn(&Described) -> bool) -> Self {
        let mut nodes = Self::default();
        for entry in std::fs::read_dir(class).into_iter().flatten().flatten() {
            let mut disks = Vec::new();
            lies_on(class, &entry.file_name().to_string_lossy(), &mut disks);
            if disks.iter().any(&is_meant) {
                nodes.block.extend(node(&entry.path()));
                commands(class, &entry.path().join("device"), COMMANDS_DEPTH, &mut nodes.commands);
            }
        }
        nodes.block.sort();
        nodes.commands.sort();
        nodes.commands.dedup();
        nodes
    }
}

/// The node of a device, as its events name it.
fn node(folder: &Path) -> Option<PathBuf> {
    let text = std::fs::read_to_string(folder.join("uevent")).ok()?;
    let name = text.lines().find_map(|line| line.strip_prefix("DEVNAME="))?;
    Some(Path::new("/dev").join(name))
}

/// Nodes of a disk's device and of what is in it, but for other disks.
fn commands(class: &Path, device: &Path, depth: u32, found: &mut Vec<PathBuf>) {
    found.extend(node(device));
    if depth == 0 {
        return;
    }
    for entry in std::fs::read_dir(device).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        // Of an NVMe subsystem with several controllers they are links.
        let is_controller = name.to_string_lossy().starts_with("nvme");
        if (is_folder || is_controller) && !class.join(&name).exists() {
            commands(class, &entry.path(), depth - 1, found);
        }
    }
}

/// The whole disks below a partition, a mapping or an array, itself among them.
fn lies_on(class: &Path, name: &str, disks: &mut Vec<Described>) {
    /// Arrays on mappings on arrays: nobody goes so deep.
    const DISKS_MAX: usize = 64;
    let folder = class.join(name);
    if name.is_empty() || disks.len() >= DISKS_MAX {
        return;
    }
    if folder.join("partition").exists() {
        let real = folder.canonicalize().unwrap_or_default();
        let disk = real.parent().and_then(Path::file_name).unwrap_or_default();
        return lies_on(class, &disk.to_string_lossy(), disks);
    }
    disks.extend(describe(&folder));
    for slave in std::fs::read_dir(folder.join("slaves")).into_iter().flatten().flatten() {
        lies_on(class, &slave.file_name().to_string_lossy(), disks);
    }
}

#[cfg(test)]
mod tests;
