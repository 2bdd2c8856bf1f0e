//! Disks that no action may write: `tinbox.preserve` of the kernel command line, selectors parted
//! by `;`. The box writes it there; an action cannot take it back.
//!
//! A name that fits no disk protects nothing, and may be that of any disk: then no disk is written
//! at all ([`Error::PreservedUnknown`]). A partition, an array or a volume stands for all disks
//! that it lies on.
//!
//! A built-in action asks before it writes ([`check`]). A container does not ask: while one runs,
//! the kernel refuses writes to these disks, whoever makes them, and the container has none of
//! their device nodes ([`guard`]). That is against a wrong name and a script that wipes whatever it
//! finds. An image with all rights that means to undo it can.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::disk::{APPEAR, LOOK};
use crate::select::{Described, Selector, describe, disks};
use crate::{Error, sys};

/// Where the kernel tells of its block devices.
const CLASS: &str = "/sys/class/block";
/// How far below a disk's own device the nodes are that take commands for it: `scsi_generic/sg0`.
const COMMANDS_DEPTH: u32 = 2;

/// Of this machine; set once as it starts.
static PRESERVED: Mutex<Vec<Word>> = Mutex::new(Vec::new());

/// One name of the policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    text: String,
    selector: Selector,
    /// Disks that this name was found to mean since the start; each stays protected.
    disks: BTreeSet<String>,
}

/// Understand the list.
///
/// # Errors
/// A sentence: a policy that is not understood must not be taken for none.
pub fn parse(text: &str) -> Result<Vec<Word>, String> {
    let words = text.split(';').map(str::trim).filter(|word| !word.is_empty());
    let word = |text: &str| {
        let selector = Selector::parse(text)?;
        Ok(Word { text: text.to_owned(), selector, disks: BTreeSet::new() })
    };
    words.map(word).collect()
}

/// From now on nothing writes to these.
pub fn set(words: Vec<Word>) {
    *PRESERVED.lock().unwrap_or_else(PoisonError::into_inner) = words;
}

impl Word {
    /// Adds the disks that the name means now.
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

/// Names of all disks to be preserved; waits for those that have not appeared. Blocks.
fn protected(device: &Path, patience: Duration) -> Result<BTreeSet<String>, Error> {
    let deadline = Instant::now() + patience;
    loop {
        let mut words = PRESERVED.lock().unwrap_or_else(PoisonError::into_inner);
        words.iter_mut().for_each(Word::look);
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

/// Refuses `device` when it, or a disk that it lies on, is preserved. Blocks.
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

/// From now on until this machine restarts the kernel refuses what would write to a preserved disk.
/// Returns the device nodes that reach one, some of which take commands that are no writes to the
/// kernel.
///
/// # Errors
/// [`Error::Io`]: one of them could not be protected. [`Error::PreservedUnknown`]: a name of the
/// policy fits no disk.
pub fn guard() -> Result<Vec<PathBuf>, Error> {
    let protected = protected(Path::new("/dev"), APPEAR)?;
    if protected.is_empty() {
        return Ok(Vec::new());
    }
    let is_preserved = |disk: &Described| protected.contains(&disk.name);
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
