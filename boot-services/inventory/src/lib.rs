//! Hardware inventory of a machine, read from `/proc` and `/sys`, its firmware and disks, and LLDP
//! frames of switches. The attributes have the format that Tinkerbell's rule sets match.
//!
//! Never: writes to a disk, changes a device, trusts a length that a device states.
//!
//! Enter at [`inventory`] (Tinkerbell's attributes), [`details`] (facts beyond them) and
//! [`neighbors`] (the details with the LLDP neighbors).

mod details;
mod efi;
mod lldp;
mod nvme;
pub mod smart;
pub mod smbios;
mod tpm;

use std::fs;
use std::path::Path;

use agent_rpc::{
    Attributes, Baseboard, Bios, Block, Chassis, Cpu, Gpu, Inventory, Memory, Network, Pci,
    Processor, Product,
};

pub use lldp::{listen, neighbor};

/// Maximum number of reported devices of one kind in Tinkerbell's attributes; further devices are
/// omitted.
const DEVICES: usize = 256;
/// Maximum number of entries of one kind in [`details()`]; further entries are omitted.
const PARTS_MAX: usize = 64;
/// Maximum length of a text that a device reports, in bytes.
const TEXT_BYTES: usize = 128;
/// Prefix of the PCI class of display controllers, as in sysfs.
const DISPLAY: &str = "0x03";
/// Prefixes of block device names that are virtual and not reported.
const VIRTUAL_DISKS: [&str; 5] = ["loop", "ram", "zram", "dm-", "nbd"];

/// Returns the kernel's random boot id, a UUID; empty if `/proc` is not mounted.
pub fn boot_id() -> String {
    read(Path::new("/proc/sys/kernel/random/boot_id")).unwrap_or_default()
}

/// Returns the facts of this machine for which Tinkerbell's attributes have no fields.
pub fn details() -> Inventory {
    details::inventory(Path::new("/"))
}

/// Returns [`details()`] with the LLDP neighbors of the interfaces; `None` without any neighbor.
/// Blocks for up to 35 s, because a switch sends a frame only every 30 s.
pub fn neighbors() -> Option<Inventory> {
    let mut neighbors = lldp::listen(lldp::LISTEN);
    let mut inventory = details();
    for interface in &mut inventory.interfaces {
        interface.neighbour = neighbors.remove(&interface.name);
    }
    inventory.interfaces.iter().any(|it| it.neighbour.is_some()).then_some(inventory)
}

/// Returns the attributes of this machine in Tinkerbell's format.
pub fn inventory() -> Attributes {
    let pci: Vec<Pci> = folders("/sys/bus/pci/devices").iter().map(|path| pci(path)).collect();
    Attributes {
        cpu: Some(cpu(&fs::read_to_string("/proc/cpuinfo").unwrap_or_default())),
        memory: Some(memory(&fs::read_to_string("/proc/meminfo").unwrap_or_default())),
        block: folders("/sys/block").iter().filter_map(|path| block(path)).collect(),
        network: folders("/sys/class/net").iter().filter_map(|path| network(path)).collect(),
        gpu: gpus(&pci),
        pci,
        chassis: Some(Chassis { serial: dmi("chassis_serial"), vendor: dmi("chassis_vendor") }),
        bios: Some(Bios {
            vendor: dmi("bios_vendor"),
            version: dmi("bios_version"),
            release_date: dmi("bios_date"),
        }),
        baseboard: Some(Baseboard {
            vendor: dmi("board_vendor"),
            product: dmi("board_name"),
            version: dmi("board_version"),
            serial_number: dmi("board_serial"),
        }),
        product: Some(Product {
            name: dmi("product_name"),
            vendor: dmi("sys_vendor"),
            serial_number: dmi("product_serial"),
        }),
    }
}

/// Returns the trimmed text of a small file; `None` if the file is missing or empty.
fn read(path: &Path) -> Option<String> {
    let text = fs::read(path).ok()?;
    let text = String::from_utf8_lossy(&text).trim().to_owned();
    (!text.is_empty()).then_some(text)
}

fn dmi(name: &str) -> Option<String> {
    read(&Path::new("/sys/class/dmi/id").join(name))
}

fn folders(path: impl AsRef<Path>) -> Vec<std::path::PathBuf> {
    let mut paths: Vec<_> =
        fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths.truncate(DEVICES);
    paths
}

/// Removes control characters from a device's text, and truncates the text to [`TEXT_BYTES`].
fn bounded(text: &str) -> String {
    let mut text: String = text.trim().chars().filter(|char| !char.is_control()).collect();
    text.truncate(text.floor_char_boundary(TEXT_BYTES));
    text
}

fn name(path: &Path) -> Option<String> {
    path.file_name().map(|name| name.to_string_lossy().into_owned())
}

/// Parses `/proc/cpuinfo`. Returns one processor for each physical package.
fn cpu(text: &str) -> Cpu {
    let mut processors: Vec<Processor> = Vec::new();
    for thread in text.split("\n\n").filter(|part| !part.trim().is_empty()) {
        let field = |key: &str| {
            let mut pairs = thread.lines().filter_map(|line| line.split_once(':'));
            pairs.find(|(name, _)| name.trim() == key).map(|(_, value)| value.trim().to_owned())
        };
        let id = field("physical id").and_then(|id| id.parse().ok()).unwrap_or(0);
        if let Some(known) = processors.iter_mut().find(|known| known.id == Some(id)) {
            known.threads = known.threads.map(|threads| threads + 1);
            continue;
        }
        processors.push(Processor {
            id: Some(id),
            cores: field("cpu cores").and_then(|cores| cores.parse().ok()).or(Some(1)),
            threads: Some(1),
            vendor: field("vendor_id"),
            model: field("model name"),
            capabilities: Vec::new(),
        });
    }
    let sum = |part: fn(&Processor) -> Option<u32>| processors.iter().filter_map(part).sum();
    Cpu {
        total_cores: Some(sum(|processor| processor.cores)),
        total_threads: Some(sum(|processor| processor.threads)),
        processors,
    }
}

fn memory(text: &str) -> Memory {
    let total = text.lines().find_map(|line| {
        let kib = line.strip_prefix("MemTotal:")?.trim().strip_suffix("kB")?;
        kib.trim().parse::<u64>().ok()
    });
    // `/proc` does not state the installed memory. The kernel's total is a lower bound.
    let usable = total.map(|kib| size(kib.saturating_mul(1024)));
    Memory { total: usable.clone(), usable }
}

/// Formats a size such as `16GB` in whole binary units, as upstream's agent prints it.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KB", "MB", "GB", "TB"];
    let mut unit = 0;
    let mut value = bytes as f64;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.0}{}", UNITS[unit])
}

fn block(path: &Path) -> Option<Block> {
    let name = name(path)?;
    if VIRTUAL_DISKS.iter().any(|start| name.starts_with(start)) {
        return None;
    }
    let sectors: u64 = read(&path.join("size"))?.parse().ok()?;
    let kind = |rotates: Option<String>| match (name.as_str(), rotates.as_deref()) {
        (name, _) if name.starts_with("sr") => "ODD",
        (_, Some("1")) => "HDD",
        _ => "SSD",
    };
    let controller = match name.as_bytes() {
        [b'n', b'v', b'm', b'e', ..] => "NVMe",
        [b'v', b'd', ..] => "virtio",
        [b'm', b'm', b'c', ..] => "MMC",
        _ => "SCSI",
    };
    let device = path.join("device");
    Some(Block {
        controller_type: Some(controller.to_owned()),
        drive_type: Some(kind(read(&path.join("queue/rotational"))).to_owned()),
        size: Some(size(sectors.saturating_mul(512))),
        physical_block_size: read(&path.join("queue/physical_block_size"))
            .map(|bytes| format!("{bytes}B")),
        vendor: read(&device.join("vendor")),
        model: read(&device.join("model")),
        wwn: read(&path.join("wwid")).or_else(|| read(&device.join("wwid"))),
        serial_number: read(&device.join("serial")).or_else(|| read(&path.join("serial"))),
        name: Some(name),
    })
}

/// Returns true for an Ethernet NIC. A virtual interface, such as `bond0` or `dummy0`, has no
/// device in sysfs, and its MAC address may be that of another machine.
fn is_nic(path: &Path) -> bool {
    // ARPHRD_ETHER: excludes loopback and tunnels.
    read(&path.join("type")).as_deref() == Some("1") && path.join("device").exists()
}

fn network(path: &Path) -> Option<Network> {
    let name = name(path)?;
    if !is_nic(path) {
        return None;
    }
    let speed = read(&path.join("speed")).filter(|speed| !speed.starts_with('-'));
    Some(Network {
        mac: read(&path.join("address")),
        speed: speed.map(|megabits| format!("{megabits}Mb/s")),
        enabled_capabilities: Vec::new(),
        name: Some(name),
    })
}

/// Reads a PCI device. Vendor and product are numbers; the box has the database of names.
fn pci(path: &Path) -> Pci {
    let driver = fs::read_link(path.join("driver")).ok();
    Pci {
        vendor: read(&path.join("vendor")),
        product: read(&path.join("device")),
        class: read(&path.join("class")),
        driver: driver.as_deref().and_then(name),
    }
}

/// Selects the display controllers among the PCI devices.
fn gpus(pci: &[Pci]) -> Vec<Gpu> {
    let display = |it: &&Pci| it.class.as_deref().is_some_and(|class| class.starts_with(DISPLAY));
    let gpu = |it: &Pci| Gpu {
        vendor: it.vendor.clone(),
        product: it.product.clone(),
        class: it.class.clone(),
        driver: it.driver.clone(),
    };
    pci.iter().filter(display).map(gpu).collect()
}

#[cfg(test)]
mod tests {
    use agent_rpc::Pci;

    use super::{TEXT_BYTES, boot_id, bounded, cpu, gpus, inventory, memory, network, size};

    #[test]
    fn displays_are_told_apart() {
        let device = |class: &str| Pci { class: Some(class.to_owned()), ..Pci::default() };
        let found = gpus(&[device("0x030000"), device("0x020000"), Pci::default()]);
        assert_eq!(found.len(), 1);
    }

    #[test]
    fn a_virtual_interface_is_not_a_nic() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["eth0", "bond0"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
            std::fs::write(folder.path().join(name).join("type"), "1\n").unwrap();
        }
        std::fs::create_dir(folder.path().join("eth0/device")).unwrap();
        assert_eq!(network(&folder.path().join("eth0")).unwrap().name.as_deref(), Some("eth0"));
        assert!(network(&folder.path().join("bond0")).is_none());
    }

    #[test]
    fn texts_are_bounded() {
        assert_eq!(bounded(" a\u{7}b\n"), "ab");
        assert!(bounded(&"ü".repeat(TEXT_BYTES)).len() <= TEXT_BYTES);
    }

    #[test]
    fn reads_cpuinfo_by_package() {
        let thread = |id, model| {
            let head = format!("vendor_id\t: V\nmodel name\t: {model}\n");
            format!("{head}physical id\t: {id}\ncpu cores\t: 2\n")
        };
        let text = [thread(0, "A"), thread(0, "A"), thread(1, "B")].join("\n");
        let cpu = cpu(&text);
        assert_eq!((cpu.total_cores, cpu.total_threads), (Some(4), Some(3)));
        assert_eq!(cpu.processors.len(), 2);
        assert_eq!(cpu.processors[0].model.as_deref(), Some("A"));
    }

    #[test]
    fn sizes_are_whole_binary_units() {
        assert_eq!(size(512), "512B");
        assert_eq!(size(8 << 30), "8GB");
        assert_eq!(memory("MemTotal:  524288 kB\n").usable.as_deref(), Some("512MB"));
        assert_eq!(memory("nonsense").usable, None);
    }

    #[test]
    fn this_machine_has_a_cpu_and_a_boot() {
        assert!(inventory().cpu.unwrap().total_threads.unwrap() > 0);
        assert_eq!(boot_id().len(), 36);
    }
}
