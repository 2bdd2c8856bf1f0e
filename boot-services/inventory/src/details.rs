//! Hardware facts beyond Tinkerbell's attributes, read from files below a root folder.

use std::path::Path;

use agent_rpc::{Disk, Interface, Inventory};
use imaging::select::describe;

use super::{PARTS_MAX, bounded, efi, folders, name, nvme, read, smart, smbios, tpm};

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
        rotational: disk.rotational,
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
    // ARPHRD_ETHER: excludes loopback and tunnels.
    if read(&path.join("type"))? != "1" {
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
mod tests {
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use super::inventory;

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    #[test]
    fn a_machine_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        write(root, "sys/class/dmi/id/product_uuid", "4C4C4544-0042-3510-8051-B2C04F4E3032\n");
        for (path, text) in [
            ("nvme0n1/size", "1000215216"),
            ("nvme0n1/device/model", "Samsung SSD 970 EVO  \n"),
            ("nvme0n1/device/serial", "S4EV1\n"),
            ("nvme0n1/queue/rotational", "0"),
            ("nvme0n1/wwid", "eui.0025385a91b0e2a1"),
            ("loop0/size", "8"),
            ("sr0/size", "8"),
        ] {
            write(root, &format!("sys/block/{path}"), text);
        }
        let disk = root.join("sys/devices/pci0000:00/ata1/host0/block/sda");
        std::fs::create_dir_all(&disk).unwrap();
        std::fs::write(disk.join("size"), "16").unwrap();
        symlink(&disk, root.join("sys/block/sda")).unwrap();
        for (path, text) in [
            ("eth0/type", "1"),
            ("eth0/address", "52:54:00:77:00:01"),
            ("eth0/speed", "2500"),
            ("eth0/carrier", "1"),
            ("eth1/type", "1"),
            ("eth1/speed", "-1"),
            ("lo/type", "772"),
        ] {
            write(root, &format!("sys/class/net/{path}"), text);
        }
        std::fs::create_dir_all(root.join("sys/class/net/eth0/device")).unwrap();
        symlink("../drivers/igc", root.join("sys/class/net/eth0/device/driver")).unwrap();
        write(root, "sys/class/tpm/tpm0/tpm_version_major", "2\n");
        std::fs::create_dir_all(root.join("sys/class/mei/mei0")).unwrap();

        let found = inventory(root);
        assert_eq!(found.uuid, "4c4c4544-0042-3510-8051-b2c04f4e3032");
        let disks: Vec<_> =
            found.disks.iter().map(|it| (it.name.as_str(), it.transport.as_str())).collect();
        assert_eq!(disks, [("nvme0n1", "nvme"), ("sda", "sata")]);
        assert_eq!(
            (found.disks[0].serial.as_str(), found.disks[0].bytes),
            ("S4EV1", 512_110_190_592)
        );
        let [first, second] = &found.interfaces[..] else { panic!("{:?}", found.interfaces) };
        assert_eq!((first.driver.as_str(), first.speed, first.carrier), ("igc", 2500, true));
        assert_eq!((second.speed, second.carrier), (0, false));
        assert_eq!(found.tpm.unwrap().version, "2.0");
        assert!(found.management_engine && found.efi.is_none() && found.memory.is_empty());
    }

    #[test]
    fn a_machine_that_tells_nothing_has_nothing() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(inventory(folder.path()), agent_rpc::Inventory::default());
    }
}
