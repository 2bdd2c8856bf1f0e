//! Links in `/dev/disk`, computed as udev does from sysfs and from the disk's content, because the
//! agent's OS has no udev.
//!
//! Sources: by-path, systemd's `udev-builtin-path_id.c`; by-id, its rules
//! `60-persistent-storage.rules`; by-partuuid and by-partlabel, the kernel's uevent of a partition;
//! by-uuid and by-label, the superblocks as `libblkid` reads them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::DiskInfo;
use super::superblock;

/// Folder of `/dev/disk`, except for `by-id`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Folder {
    /// `by-path`: controller and port of the disk.
    Path,
    /// `by-partuuid`: UUID of a partition.
    PartUuid,
    /// `by-partlabel`: name of a partition.
    PartLabel,
    /// `by-uuid`: UUID of a filesystem.
    Uuid,
    /// `by-label`: label of a filesystem.
    Label,
}

impl Folder {
    const ALL: [(&'static str, Self); 5] = [
        ("/dev/disk/by-path/", Self::Path),
        ("/dev/disk/by-partuuid/", Self::PartUuid),
        ("/dev/disk/by-partlabel/", Self::PartLabel),
        ("/dev/disk/by-uuid/", Self::Uuid),
        ("/dev/disk/by-label/", Self::Label),
    ];

    /// Splits a link's path into folder and name; `None` for any other path.
    pub fn split(link: &str) -> Option<(Self, &str)> {
        Self::ALL.iter().find_map(|(prefix, folder)| Some((*folder, link.strip_prefix(prefix)?)))
    }
}

/// Folders that replace `/sys` and `/dev` in tests.
#[derive(Debug, Clone, Copy)]
pub struct Roots<'a> {
    /// Path of sysfs, normally `/sys`.
    pub sys: &'a Path,
    /// Path of the device nodes, normally `/dev`.
    pub dev: &'a Path,
}

impl Roots<'static> {
    /// Returns `/sys` and `/dev`.
    pub fn own() -> Self {
        Self { sys: Path::new("/sys"), dev: Path::new("/dev") }
    }
}

/// Returns the number of the partition of `disk` that a link names, 0 for the whole disk; `None` if
/// the link does not belong to this disk.
pub fn target(roots: Roots<'_>, folder: Folder, name: &str, disk: &DiskInfo) -> Option<u32> {
    let class = roots.sys.join("class/block").join(&disk.name);
    if folder == Folder::Path {
        let (whole, part) = super::without_part(name);
        return paths(&class, disk).contains(whole).then_some(part.unwrap_or(0));
    }
    let wanted = decoded(name);
    if wanted.is_empty() {
        return None;
    }
    let parts = partitions(&class).into_iter();
    let mut all = std::iter::once((0, disk.name.clone())).chain(parts);
    let found = all.find(|(number, device)| match folder {
        Folder::PartUuid => uevent(&class, *number, device, "PARTUUID=") == Some(wanted.clone()),
        Folder::PartLabel => uevent(&class, *number, device, "PARTNAME=") == Some(wanted.clone()),
        _ => superblock::read(&roots.dev.join(device)).is_some_and(|found| match folder {
            Folder::Uuid => found.uuid.eq_ignore_ascii_case(&wanted),
            _ => found.label == wanted,
        }),
    });
    found.map(|(number, _)| number)
}

/// Returns the value of `key` in a partition's uevent; `None` for the whole disk (`number` 0).
fn uevent(class: &Path, number: u32, device: &str, key: &str) -> Option<String> {
    let text = fs::read_to_string(class.join(device).join("uevent")).ok()?;
    let value = text.lines().find_map(|line| line.strip_prefix(key))?;
    (number > 0 && !value.is_empty()).then(|| value.to_owned())
}

/// Lists the numbers and names of a disk's partitions.
fn partitions(class: &Path) -> Vec<(u32, String)> {
    let entries = fs::read_dir(class).into_iter().flatten().flatten();
    let number = |path: PathBuf| fs::read_to_string(path).ok()?.trim().parse().ok();
    entries
        .filter_map(|entry| {
            let number = number(entry.path().join("partition"))?;
            Some((number, entry.file_name().to_string_lossy().into_owned()))
        })
        .collect()
}

/// Decodes a udev name, in which `\x20` stands for a byte that is not allowed in names.
fn decoded(name: &str) -> String {
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name.as_bytes();
    while let [first, tail @ ..] = rest {
        let byte = rest
            .strip_prefix(b"\\x")
            .and_then(|hex| std::str::from_utf8(hex.get(..2)?).ok())
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &rest[4..] } else { tail };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns the names of a whole disk in `by-path`, in the spellings of all udev versions.
fn paths(class: &Path, disk: &DiskInfo) -> BTreeSet<String> {
    let Ok(place) = class.canonicalize() else { return BTreeSet::new() };
    let words: Vec<&str> = place.iter().filter_map(|word| word.to_str()).collect();
    let last_pci = words.iter().rposition(|word| is_pci(word));
    let Some(at) = last_pci else { return BTreeSet::new() };
    let (pci, below) = (format!("pci-{}", words[at]), &words[at + 1..]);
    let mut names = BTreeSet::new();
    if below.iter().any(|word| word.starts_with("virtio")) {
        names.insert(pci.clone());
        names.insert(format!("virtio-{pci}"));
    }
    if below.first() == Some(&"nvme") {
        let number = disk.name.rsplit_once('n').map_or("1", |(_, number)| number);
        let nsid = fs::read_to_string(class.join("nsid")).unwrap_or_default();
        let nsid = if nsid.trim().is_empty() { number } else { nsid.trim() };
        names.insert(format!("{pci}-nvme-{nsid}"));
    }
    let scsi = below.iter().find_map(|word| address(word));
    let Some([_, channel, target, lun]) = scsi else { return names };
    let usb = below.iter().rfind(|word| is_usb(word));
    if let Some(usb) = usb {
        let (_, port) = usb.split_once('-').unwrap_or_default();
        for kind in ["usb", "usbv2", "usbv3"] {
            names.insert(format!("{pci}-{kind}-0:{port}-scsi-0:{channel}:{target}:{lun}"));
        }
    } else if let Some(port) = below.iter().find_map(|word| word.strip_prefix("ata")) {
        let port = ata_port(&place, port).unwrap_or_else(|| port.to_owned());
        names.insert(format!("{pci}-ata-{port}"));
        names.insert(format!("{pci}-ata-{port}.{target}"));
    } else if let Some(end) = below.iter().find(|word| word.starts_with("end_device-")) {
        names.extend(sas(&place, end, lun).into_iter().map(|sas| format!("{pci}-sas-{sas}")));
    } else {
        let host = below.iter().find_map(|word| word.strip_prefix("host"));
        let host = host.and_then(|host| host_index(&place, host)).unwrap_or(0);
        names.insert(format!("{pci}-scsi-{host}:{channel}:{target}:{lun}"));
    }
    names
}

/// Returns true for a PCI address such as `0000:3b:00.0`.
fn is_pci(word: &str) -> bool {
    let parts: Vec<&str> = word.split([':', '.']).collect();
    parts.len() == 4
        && word.as_bytes().get(4) == Some(&b':')
        && parts.iter().all(|part| part.chars().all(|char| char.is_ascii_hexdigit()))
}

/// Returns true for the sysfs name of a USB interface, such as `1-2.3:1.0`.
fn is_usb(word: &str) -> bool {
    word.split_once('-').is_some_and(|(bus, rest)| {
        bus.parse::<u32>().is_ok()
            && rest.contains(':')
            && rest.chars().all(|char| char.is_ascii_digit() || ".:".contains(char))
    })
}

/// Parses a SCSI address such as `0:0:1:0`: host, channel, target, LUN.
fn address(word: &str) -> Option<[u64; 4]> {
    let parts = word.split(':').map(|part| part.parse().ok()).collect::<Option<Vec<u64>>>()?;
    parts.try_into().ok()
}

/// Returns the port number of ATA link `link` at its controller, from 1.
fn ata_port(place: &Path, link: &str) -> Option<String> {
    let link = format!("ata{link}");
    let above = place.ancestors().find(|path| path.ends_with(&link))?;
    let number = fs::read_to_string(above.join("ata_port").join(&link).join("port_no")).ok()?;
    Some(number.trim().to_owned())
}

/// Returns the index of a SCSI host among its controller's hosts, from 0.
fn host_index(place: &Path, host: &str) -> Option<u64> {
    let own = format!("host{host}");
    let controller = place.ancestors().find(|path| path.ends_with(&own))?.parent()?;
    let hosts = fs::read_dir(controller)
        .ok()?
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.strip_prefix("host")?.parse::<u64>().ok());
    host.parse::<u64>().ok()?.checked_sub(hosts.min()?)
}

/// Returns the by-path suffixes of a SAS disk: by the phy of a narrow port, and by SAS address.
fn sas(place: &Path, end: &str, lun: u64) -> Vec<String> {
    let Some(device) = place.ancestors().find(|path| path.ends_with(end)) else {
        return Vec::new();
    };
    let read = |name: &str| {
        let path = device.join("sas_device").join(end).join(name);
        fs::read_to_string(path).map(|text| text.trim().to_owned()).ok()
    };
    let phy = read("phy_identifier").map(|phy| format!("phy{phy}-lun-{lun}"));
    let address = read("sas_address").map(|address| format!("{address}-lun-{lun}"));
    phy.into_iter().chain(address).collect()
}

#[cfg(test)]
mod tests;
