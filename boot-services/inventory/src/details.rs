//! Hardware facts beyond Tinkerbell's attributes, read from files below a root folder.

use std::path::Path;

use agent_rpc::{Disk, Interface, Inventory};
use imaging::select::describe;

use super::{PARTS_MAX, bounded, efi, folders, is_nic, name, nvme, read, smart, smbios, tpm};

/// Maximum bytes read of the SMBIOS table. Tables of real boards are much smaller.
const TABLE_MAX: u64 = 256 << 10;
/// Prefixes of block device names that are not physical disks.
const NO_DISKS: [&str; 8] = ["loop", "ram", "zram", "dm-", "nbd", "sr", "md", "fd"];

/// Returns the inventory of the machine whose `/proc`, `/sys` and `/dev` are below `root`.
pub fn inventory(root: &Path) -> Inventory {
    let sys = root.join("sys");
    let of = |path: &str| folders(sys.join(path)).into_iter().take(PARTS_MAX);
    Inventory {
        uuid: text(&sys.join("class/dmi/id/product_uuid")).to_lowercase(),
        memory: smbios::memory(&table(&sys.join("firmware/dmi/tables/DMI"))),
        disks: of("block").filter_map(|path| disk(root, &path)).collect(),
        interfaces: of("class/net").filter_map(|path| interface(&path)).collect(),
        tpm: tpm::tpm(root),
        management_engine: of("class/mei").next().is_some(),
        efi: efi::efi(&sys.join("firmware/efi/efivars")),
    }
}

fn text(path: &Path) -> String {
    bounded(&read(path).unwrap_or_default())
}

fn table(path: &Path) -> Vec<u8> {
    use std::io::Read as _;
    let mut table = Vec::new();
    if let Ok(file) = std::fs::File::open(path)
        && let Err(error) = file.take(TABLE_MAX).read_to_end(&mut table)
    {
        tracing::debug!(%error, "cannot read the SMBIOS tables to their end");
    }
    table
}

fn disk(root: &Path, path: &Path) -> Option<Disk> {
    let disk = describe(path).filter(|disk| disk.size > 0)?;
    if NO_DISKS.iter().any(|start| disk.name.starts_with(start)) {
        return None;
    }
    let transport = transport(&disk.name, path);
    let node = |name: &str| root.join("dev").join(name);
    let health = match transport {
        // The health is the controller's. The namespace belongs to it.
        "nvme" => {
            let mut parts = disk.name.split_inclusive(|c: char| c.is_ascii_digit());
            parts.next().and_then(|name| nvme::health(&node(name)))
        }
        "sata" => smart::health(&node(&disk.name)),
        // USB bridges are not queried, because some hang on an unknown command.
        _ => None,
    };
    Some(Disk {
        health,
        transport: transport.to_owned(),
        bytes: disk.size,
        // The kernel reports 1 for a virtio disk, which does not state how it stores data.
        rotational: disk.rotational && transport != "virtio",
        model: bounded(&disk.model),
        serial: bounded(&disk.serial),
        wwn: bounded(&disk.wwn),
        name: disk.name,
    })
}

/// Returns the transport of a disk (`nvme`, `sata`, `usb`, …), from its name or else from its sysfs
/// path.
fn transport(name: &str, path: &Path) -> &'static str {
    let by_name = [("nvme", "nvme"), ("vd", "virtio"), ("mmcblk", "mmc")];
    if let Some((_, word)) = by_name.iter().find(|(start, _)| name.starts_with(start)) {
        return word;
    }
    let way = path.canonicalize().unwrap_or_default();
    let has = |part: &str| way.iter().any(|word| word.to_string_lossy().starts_with(part));
    match () {
        () if has("usb") => "usb",
        () if has("ata") => "sata",
        () => "scsi",
    }
}

fn interface(path: &Path) -> Option<Interface> {
    if !is_nic(path) {
        return None;
    }
    let driver = std::fs::read_link(path.join("device/driver")).ok();
    let speed = read(&path.join("speed")).and_then(|speed| speed.parse().ok());
    Some(Interface {
        name: name(path)?,
        mac: text(&path.join("address")),
        driver: driver.as_deref().and_then(name).unwrap_or_default(),
        speed: speed.unwrap_or(0),
        carrier: read(&path.join("carrier")).as_deref() == Some("1"),
        neighbour: None,
    })
}

#[cfg(test)]
mod tests;
