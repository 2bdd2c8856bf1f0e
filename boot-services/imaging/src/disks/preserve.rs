//! Preserved disks, which no action may write. `tinbox.preserve` on the kernel command line lists
//! their selectors, separated by `;`. The box sets the list; an action cannot change it.
//!
//! A selector that matches no disk could mean any disk. In that case no disk may be written at all
//! ([`Error::PreservedUnknown`]). A selector of a partition, array or volume protects all disks
//! below.
//!
//! A built-in action calls [`check`] before it writes. For a container, the kernel refuses all
//! writes to preserved disks, and the container has none of their device nodes ([`guard`]). This
//! protects against a wrong name and against a script that wipes every disk. It does not protect
//! against a malicious image, which has all capabilities and can undo it.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::select::{DiskInfo, Selector, describe, disks};
use super::wait::{APPEAR, LOOK};
use crate::{Error, sys};

/// Folder with all block devices in sysfs.
const CLASS: &str = "/sys/class/block";
/// Depth of the search for command nodes below a disk's device, such as `scsi_generic/sg0`.
const COMMANDS_DEPTH: u32 = 2;

/// Preserved disks of this machine, set once at start.
static PRESERVED: Mutex<Vec<PreservedName>> = Mutex::new(Vec::new());

/// Selector of `tinbox.preserve`, and the disks that it has matched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreservedName {
    text: String,
    selector: Selector,
    /// Kernel names of all disks that matched at any time since the start. Each stays protected.
    disks: BTreeSet<String>,
}

/// Parses the value of `tinbox.preserve`.
///
/// # Errors
/// A selector is invalid; the text is a sentence. The caller must not continue without protection.
pub fn parse(text: &str) -> Result<Vec<PreservedName>, String> {
    let words = text.split(';').map(str::trim).filter(|word| !word.is_empty());
    let word = |text: &str| {
        let selector = Selector::parse(text)?;
        Ok(PreservedName { text: text.to_owned(), selector, disks: BTreeSet::new() })
    };
    words.map(word).collect()
}

/// Sets the preserved disks of this machine.
pub fn set(words: Vec<PreservedName>) {
    *PRESERVED.lock().unwrap_or_else(PoisonError::into_inner) = words;
}

impl PreservedName {
    /// Adds the disks that match now.
    fn look(&mut self) {
        match &self.selector {
            Selector::Path(path) => {
                let path = path.canonicalize().unwrap_or_else(|_| path.clone());
                let mut found = Vec::new();
                if let Some(name) = path.file_name().filter(|_| path.starts_with("/dev")) {
                    lies_on(Path::new(CLASS), &name.to_string_lossy(), &mut found);
                }
                self.disks.extend(found.into_iter().map(|disk| disk.name));
            }
            selector => {
                let found = disks().into_iter().filter(|disk| selector.fits(disk));
                self.disks.extend(found.map(|disk| disk.name));
            }
        }
    }
}

/// Returns the kernel names of all preserved disks. Waits up to `timeout` until each selector
/// matches a disk. Blocks.
fn protected(device: &Path, timeout: Duration) -> Result<BTreeSet<String>, Error> {
    let deadline = Instant::now() + timeout;
    loop {
        let mut words = PRESERVED.lock().unwrap_or_else(PoisonError::into_inner);
        words.iter_mut().for_each(PreservedName::look);
        let Some(unknown) = words.iter().find(|word| word.disks.is_empty()) else {
            return Ok(words.iter().flat_map(|word| word.disks.iter().cloned()).collect());
        };
        if Instant::now() >= deadline {
            let (path, word) = (device.to_owned(), unknown.text.clone());
            return Err(Error::PreservedUnknown { path, word });
        }
        drop(words);
        std::thread::sleep(LOOK);
    }
}

/// Returns an error if `device` is, or lies on, a preserved disk. Blocks.
///
/// # Errors
/// [`Error::Preserved`], or [`Error::PreservedUnknown`] for every device.
pub fn check(device: &Path) -> Result<(), Error> {
    let protected = protected(device, APPEAR)?;
    if protected.is_empty() {
        return Ok(());
    }
    let path = device.canonicalize().unwrap_or_else(|_| device.to_owned());
    let mut disks = Vec::new();
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    lies_on(Path::new(CLASS), &name.unwrap_or_default(), &mut disks);
    match disks.iter().find(|disk| protected.contains(&disk.name)) {
        Some(disk) => {
            let (path, disk) = (device.to_owned(), disk.name.clone());
            Err(Error::Preserved { path, disk })
        }
        None => Ok(()),
    }
}

/// Makes the preserved disks read-only in the kernel until the machine restarts. Returns their
/// device nodes, for the caller to hide: some nodes accept commands that the kernel does not treat
/// as writes.
///
/// # Errors
/// [`Error::Io`]: a disk could not be made read-only. [`Error::PreservedUnknown`]: a selector
/// matches no disk.
pub fn guard() -> Result<Vec<PathBuf>, Error> {
    let protected = protected(Path::new("/dev"), APPEAR)?;
    if protected.is_empty() {
        return Ok(Vec::new());
    }
    let is_preserved = |disk: &DiskInfo| protected.contains(&disk.name);
    let Nodes { block, mut commands } = Nodes::find(Path::new(CLASS), is_preserved);
    commands.extend(block.iter().cloned());
    for path in block {
        let doing = |error| Error::io(format!("protect {}", path.display()))(error);
        match File::open(&path) {
            Ok(disk) => sys::set_read_only(&disk).map_err(doing)?,
            // Without a device node the disk is not reachable.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(doing(error)),
        }
    }
    commands.retain(|path| path.exists());
    Ok(commands)
}

/// Device nodes that give access to the preserved disks.
#[derive(Debug, Default, PartialEq, Eq)]
struct Nodes {
    /// Block devices: the disks, their partitions, and arrays and mappings on them.
    block: Vec<PathBuf>,
    /// Character devices that accept commands for the disks, such as `/dev/sg0`.
    commands: Vec<PathBuf>,
}

impl Nodes {
    fn find(class: &Path, is_meant: impl Fn(&DiskInfo) -> bool) -> Self {
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

/// Returns the path of a device's node, from DEVNAME in its uevent.
fn node(folder: &Path) -> Option<PathBuf> {
    let text = std::fs::read_to_string(folder.join("uevent")).ok()?;
    let name = text.lines().find_map(|line| line.strip_prefix("DEVNAME="))?;
    Some(Path::new("/dev").join(name))
}

/// Collects the nodes of `device` and of the devices below, except for other block devices.
fn commands(class: &Path, device: &Path, depth: u32, found: &mut Vec<PathBuf>) {
    found.extend(node(device));
    if depth == 0 {
        return;
    }
    for entry in std::fs::read_dir(device).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        // In an NVMe subsystem with several controllers, the controllers are symbolic links.
        let is_controller = name.to_string_lossy().starts_with("nvme");
        if (is_folder || is_controller) && !class.join(&name).exists() {
            commands(class, &entry.path(), depth - 1, found);
        }
    }
}

/// Collects the disks below the device `name` (partition, mapping or array), and the device itself
/// if it is not a partition.
fn lies_on(class: &Path, name: &str, disks: &mut Vec<DiskInfo>) {
    /// Maximum number of disks below a device; real arrays and mappings have fewer.
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
