//! Disks that no action may write: `tinbox.preserve` of the kernel command line, selectors parted
//! by `;`. The box writes it there; an action cannot take it back.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use crate::Error;
use crate::select::{Described, Selector, describe};

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
    lies_on(Path::new("/sys/class/block"), &name.unwrap_or_default(), &mut disks);
    match disks.iter().find(|disk| preserved.iter().any(|selector| selector.fits(disk))) {
        Some(disk) => {
            let (path, disk) = (device.to_owned(), disk.name.clone());
            Err(Error::Preserved { path, disk })
        }
        None => Ok(()),
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

    use super::{lies_on, parse};

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
}
