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
mod tests {
    use std::os::unix::fs::symlink;

    use super::{Nodes, lies_on, parse};

    #[test]
    fn a_list_is_understood_whole_or_not_at_all() {
        assert_eq!(parse("/dev/sda; serial=X,model=Y ;").unwrap().len(), 2);
        assert_eq!(parse("").unwrap(), []);
        assert!(parse("serial=X;nonsense").is_err());
    }

    #[test]
    fn a_partition_and_a_mapping_lie_on_their_disks() {
        let folder = tempfile::tempdir().unwrap();
        let (class, devices) = (folder.path().join("class"), folder.path().join("devices"));
        std::fs::create_dir_all(devices.join("sda/sda1")).unwrap();
        std::fs::create_dir_all(class.join("dm-0/slaves/sda1")).unwrap();
        std::fs::write(class.join("dm-0/size"), "5").unwrap();
        std::fs::write(devices.join("sda/size"), "9").unwrap();
        std::fs::write(devices.join("sda/sda1/partition"), "1").unwrap();
        symlink(devices.join("sda"), class.join("sda")).unwrap();
        symlink(devices.join("sda/sda1"), class.join("sda1")).unwrap();
        for (name, expected) in
            [("sda", &["sda"][..]), ("sda1", &["sda"]), ("dm-0", &["dm-0", "sda"])]
        {
            let mut disks = Vec::new();
            lies_on(&class, name, &mut disks);
            let names: Vec<_> = disks.iter().map(|disk| disk.name.as_str()).collect();
            assert_eq!(names, expected, "{name}");
        }
    }
    #[test]
    fn every_node_that_reaches_a_disk_is_found_and_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let (class, devices) = (folder.path().join("class"), folder.path().join("devices"));
        let make = |path: &str, node: &str| {
            let path = devices.join(path);
            std::fs::create_dir_all(&path).unwrap();
            std::fs::write(path.join("size"), "9").unwrap();
            std::fs::write(path.join("uevent"), format!("MAJOR=8\nDEVNAME={node}\n")).unwrap();
        };
        make("0:0:0:0/block/sda", "sda");
        make("0:0:0:0/block/sda/sda1", "sda1");
        make("0:0:0:0/scsi_generic/sg0", "sg0");
        make("0:0:0:0/bsg/0:0:0:0", "bsg/0:0:0:0");
        make("1:0:0:0/block/sdb", "sdb");
        make("1:0:0:0/scsi_generic/sg1", "sg1");
        make("nvme0", "nvme0");
        make("nvme0/nvme0n1", "nvme0n1");
        make("nvme0/nvme0n2", "nvme0n2");
        make("nvme0/ng0n1", "ng0n1");
        make("virtual/dm-0", "dm-0");
        std::fs::create_dir_all(&class).unwrap();
        for (name, place, device) in [
            ("sda", "0:0:0:0/block/sda", Some("0:0:0:0")),
            ("sda1", "0:0:0:0/block/sda/sda1", None),
            ("sdb", "1:0:0:0/block/sdb", Some("1:0:0:0")),
            ("nvme0n1", "nvme0/nvme0n1", Some("nvme0")),
            ("nvme0n2", "nvme0/nvme0n2", Some("nvme0")),
            ("dm-0", "virtual/dm-0", None),
        ] {
            symlink(devices.join(place), class.join(name)).unwrap();
            if let Some(device) = device {
                symlink(devices.join(device), devices.join(place).join("device")).unwrap();
                // As every device has one, which leads to all that its driver has.
                let driver = devices.join(device).join("driver");
                let _ = symlink(&devices, driver);
            }
        }
        std::fs::write(devices.join("0:0:0:0/block/sda/sda1/partition"), "1").unwrap();
        std::fs::create_dir_all(devices.join("virtual/dm-0/slaves/sda1")).unwrap();
        let nodes = |meant: &str| {
            let nodes = Nodes::find(&class, |disk| disk.name == meant);
            let shown = |paths: Vec<std::path::PathBuf>| {
                let paths = paths.iter().map(|path| path.display().to_string());
                paths.collect::<Vec<_>>().join(" ")
            };
            (shown(nodes.block), shown(nodes.commands))
        };
        let words = |block: &str, commands: &str| (block.to_owned(), commands.to_owned());
        let of_sda = words("/dev/dm-0 /dev/sda /dev/sda1", "/dev/bsg/0:0:0:0 /dev/sg0");
        assert_eq!(nodes("sda"), of_sda);
        assert_eq!(nodes("sdb"), words("/dev/sdb", "/dev/sg1"));
        assert_eq!(nodes("nvme0n1"), words("/dev/nvme0n1", "/dev/ng0n1 /dev/nvme0"));
        assert_eq!(nodes("none"), words("", ""));
    }
}
