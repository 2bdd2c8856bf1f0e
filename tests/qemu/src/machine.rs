//! The QEMU command line of one NUC: a pure function of its configuration.

use std::path::PathBuf;

use stdx::MacAddr;

use crate::{BootDevice, BootOrder, BootPath, Firmware, Model, NucConfig};

/// EDK2 firmware for virtual machines with 4 MiB of flash (package ovmf).
pub const OVMF_CODE: &str = "/usr/share/OVMF/OVMF_CODE_4M.fd";
/// Empty variable store of the firmware, copied for every NUC.
pub const OVMF_VARS: &str = "/usr/share/OVMF/OVMF_VARS_4M.fd";
/// Unit of QEMU's disk offsets, in bytes.
const SECTOR: u64 = 512;
/// `bootindex` of the disk in every boot order; the NIC's index is one lower or higher.
const DISK_INDEX: u8 = 2;

/// QOM path of the NIC, used to change its boot index.
pub const NIC_PATH: &str = "/machine/peripheral/net0";
/// QEMU's name for the network cable.
pub const CABLE: &str = "net0";

/// The files of one NUC.
#[derive(Debug)]
pub struct Files {
    pub disk: PathBuf,
    pub vars: PathBuf,
    pub monitor: PathBuf,
    pub qemu_log: PathBuf,
    /// Sockets of packets from the NIC, before and after a `splice` rewrites them.
    pub said: PathBuf,
    pub told: PathBuf,
    /// Sockets of packets to the NIC, before and after a `splice` rewrites them.
    pub came: PathBuf,
    pub heard: PathBuf,
}

impl Files {
    /// Image file of disk number `which`: 2 for the second disk, 3 for the third, and so on.
    pub fn more_disk(&self, which: usize) -> PathBuf {
        self.disk.with_extension(format!("{which}.img"))
    }

    /// The file of the NVMe disk.
    pub fn nvme_disk(&self) -> PathBuf {
        self.disk.with_extension("nvme.img")
    }

    /// Disks that are not virtio disks, with their sizes in bytes.
    pub fn others(&self, config: &NucConfig) -> Vec<(Other, u64)> {
        let nvme = Other { device: "nvme", id: "nvme", file: self.nvme_disk() };
        let sata = self.disk.with_extension("sata.img");
        // The first port of q35's own AHCI.
        let sata = Other { device: "ide-hd,bus=ide.0", id: "sata", file: sata };
        let all = [(nvme, config.nvme_disk), (sata, config.sata_disk)];
        all.into_iter().filter_map(|(other, bytes)| Some((other, bytes?))).collect()
    }
}

/// A disk that is not a virtio disk.
#[derive(Debug)]
pub struct Other {
    /// Device model, as QEMU names it.
    pub device: &'static str,
    /// QEMU's ID of the disk; in capitals it is the end of its serial number.
    pub id: &'static str,
    /// Image file of the disk.
    pub file: PathBuf,
}

/// MAC address of a NUC: `52:54:00:77:00:NN`.
pub fn mac(number: u8) -> MacAddr {
    MacAddr([0x52, 0x54, 0x00, 0x77, 0x00, number])
}

/// SMBIOS UUID of a NUC: `77777777-0000-4000-8000-0000000000NN`, as the firmware shows it.
pub fn uuid(number: u8) -> String {
    format!("77777777-0000-4000-8000-0000000000{number:02x}")
}

/// Interface name of a NUC's bridge port.
pub fn tap(number: u8) -> String {
    format!("tap{number}")
}

/// `bootindex` of the NIC that puts the device `once` first; for `Normal`, the first device of the
/// permanent order `order`.
pub fn nic_index(order: BootOrder, once: BootDevice) -> u8 {
    match (once, order) {
        (BootDevice::Network, _) | (BootDevice::Normal, BootOrder::NetworkFirst) => DISK_INDEX - 1,
        (BootDevice::Disk, _) | (BootDevice::Normal, BootOrder::DiskFirst) => DISK_INDEX + 1,
    }
}

/// All arguments of `qemu-system-x86_64`. The machine starts paused, so that the caller can restore
/// the permanent boot order before the first instruction runs.
pub fn arguments(number: u8, config: &NucConfig, files: &Files, nic_index: u8) -> Vec<String> {
    let mut arguments: Vec<String> = [
        "-nodefaults",
        "-no-user-config",
        "-display",
        "none",
        "-vga",
        "std",
        "-S",
        "-chardev",
        "stdio,id=serial0,signal=off",
        "-serial",
        "chardev:serial0",
    ]
    .map(str::to_owned)
    .to_vec();
    let mut option = |name: &str, value: String| {
        arguments.push(name.to_owned());
        arguments.push(value);
    };
    let bios = config.firmware() == Firmware::Bios;
    // Without graphics SeaBIOS mirrors its screen, and so iPXE's output, to the serial port.
    let graphics = if bios { ",graphics=off" } else { "" };
    option("-name", format!("nuc{number}"));
    option("-machine", format!("q35,accel=tcg{graphics}"));
    option("-cpu", config.cpu.clone());
    option("-m", config.memory_mib.to_string());
    option("-smp", config.cpus.to_string());
    option("-uuid", uuid(number));
    let Model { manufacturer, product } = config.model;
    let names = format!("manufacturer={manufacturer},product={product}");
    option("-smbios", format!("type=1,{names},serial=NUC{number:04}"));
    option("-qmp", format!("unix:{},server=on,wait=off", files.monitor.display()));
    if !bios {
        option("-drive", format!("if=pflash,format=raw,readonly=on,file={OVMF_CODE}"));
        option("-drive", format!("if=pflash,format=raw,file={}", files.vars.display()));
        for (version, boots) in [(4, BootPath::UefiPxe4), (6, BootPath::UefiPxe6)] {
            if config.path != boots {
                // EDK2 would try the other IP version first, and each try ends with a timeout.
                option(
                    "-fw_cfg",
                    format!("name=opt/org.tianocore/IPv{version}PXESupport,string=n"),
                );
            }
        }
    }
    network(number, config, files, nic_index).into_iter().for_each(|(name, it)| option(name, it));
    // The host's page cache survives a killed QEMU. So `unsafe` loses nothing that a power cut of
    // the virtual machine would keep; it only reduces writes to the host's disk.
    let image = image(config, files);
    option("-drive", format!("if=none,id=d0,format=raw,cache=unsafe,discard=unmap,{image}"));
    option(
        "-device",
        format!("virtio-blk-pci,drive=d0,id=disk0,serial=TINBOX{number},bootindex={DISK_INDEX}"),
    );
    for at in 1..=config.more_disks.len() {
        let file = files.more_disk(at + 1);
        let format = "format=raw,cache=unsafe,discard=unmap";
        option("-drive", format!("if=none,id=d{at},{format},file={}", file.display()));
        let serial = format!("TINBOX{number}-{}", at + 1);
        option("-device", format!("virtio-blk-pci,drive=d{at},id=disk{at},serial={serial}"));
    }
    others(number, config, files).into_iter().for_each(|(name, value)| option(name, value));
    arguments
}

/// QEMU arguments of the disks that are not virtio disks.
fn others(number: u8, config: &NucConfig, files: &Files) -> Vec<(&'static str, String)> {
    let each = files.others(config).into_iter().flat_map(|(Other { device, id, file }, _)| {
        let serial = format!("TINBOX{number}-{}", id.to_uppercase());
        let format = "format=raw,cache=unsafe,discard=unmap";
        [
            ("-drive", format!("if=none,id={id}-drive,{format},file={}", file.display())),
            ("-device", format!("{device},drive={id}-drive,id={id},serial={serial}")),
        ]
    });
    each.collect()
}

/// The part of QEMU's `-drive` that names the disk's file. For a disk with an unwritable place, the
/// driver `blkdebug` fails every write to this place.
fn image(config: &NucConfig, files: &Files) -> String {
    let disk = files.disk.display();
    match config.unwritable {
        None => format!("file={disk}"),
        Some(place) => format!(
            "file.driver=blkdebug,file.image.driver=file,file.image.filename={disk},\
             file.inject-error.0.event=none,file.inject-error.0.iotype=write,\
             file.inject-error.0.errno=5,file.inject-error.0.sector={}",
            place / SECTOR
        ),
    }
}

/// The NIC, its cable, and the packet filters between them.
fn network(
    number: u8,
    config: &NucConfig,
    files: &Files,
    nic_index: u8,
) -> Vec<(&'static str, String)> {
    let up = config.path == BootPath::BiosPlainPxe || config.vlan.is_some();
    let splices = [
        (up, "rx", ["said", "told"], [&files.said, &files.told]),
        (config.vlan.is_some(), "tx", ["came", "heard"], [&files.came, &files.heard]),
    ];
    // A filter that rewrites packets needs plain Ethernet frames, without a virtio header.
    let bare = if up { ",vnet_hdr=off" } else { "" };
    let tap = tap(number);
    let mut options =
        vec![("-netdev", format!("tap,id=n0,ifname={tap},script=no,downscript=no{bare}"))];
    for (_, queue, [from, to], files) in splices.into_iter().filter(|(wanted, ..)| *wanted) {
        let ends = format!("netdev=n0,queue={queue},outdev={from},indev={to}");
        options.extend([
            ("-chardev", format!("socket,id={from},path={}", files[0].display())),
            ("-chardev", format!("socket,id={to},path={}", files[1].display())),
            ("-object", format!("filter-redirector,id=splice-{queue},{ends}")),
        ]);
    }
    // An empty `romfile` keeps iPXE's EFI driver out, so that EDK2's own client boots.
    let rom = if config.path.is_pure_edk2() { ",romfile=" } else { "" };
    let (device, mac) = (config.nic.device(), mac(number));
    let card = format!("{device},netdev=n0,id={CABLE},mac={mac},bootindex={nic_index}{rom}");
    options.push(("-device", card));
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(config: &NucConfig) -> String {
        let files = Files {
            disk: "/w/disk".into(),
            vars: "/w/vars".into(),
            monitor: "/w/qmp".into(),
            qemu_log: "/w/log".into(),
            said: "/w/said".into(),
            told: "/w/told".into(),
            came: "/w/came".into(),
            heard: "/w/heard".into(),
        };
        arguments(3, config, &files, 1).join(" ")
    }

    #[test]
    fn only_pure_edk2_goes_without_the_option_rom() {
        assert!(line(&NucConfig::uefi()).contains(",romfile= "));
        assert!(!line(&NucConfig::bios()).contains("romfile"));
        let ipxe = NucConfig { path: BootPath::UefiIpxeRom, ..NucConfig::uefi() };
        assert!(!line(&ipxe).contains("romfile"));
    }

    #[test]
    fn a_boot_path_leaves_its_own_client_on() {
        let off = |path| {
            let line = line(&NucConfig { path, ..NucConfig::uefi() });
            [4, 6].map(|v| line.contains(&format!("IPv{v}PXESupport,string=n")))
        };
        assert_eq!(off(BootPath::UefiPxe4), [false, true]);
        assert_eq!(off(BootPath::UefiPxe6), [true, false]);
        assert_eq!(off(BootPath::UefiHttp4), [true, true]);
    }

    #[test]
    fn a_plain_rom_has_its_words_go_through_the_harness() {
        let plain = NucConfig { path: BootPath::BiosPlainPxe, ..NucConfig::bios() };
        assert!(line(&plain).contains("outdev=said,indev=told"));
        assert!(!line(&plain).contains("came"), "the wire's words come as they are");
        assert!(!line(&NucConfig::bios()).contains("filter-redirector"));
    }

    #[test]
    fn a_vlan_has_both_directions_go_through_the_harness() {
        let line = line(&NucConfig { vlan: Some(7), ..NucConfig::bios() });
        assert!(line.contains("vnet_hdr=off"));
        assert!(line.contains("queue=rx,outdev=said,indev=told"));
        assert!(line.contains("queue=tx,outdev=came,indev=heard"));
    }

    #[test]
    fn more_disks_follow_the_first() {
        let two = NucConfig { more_disks: vec![1 << 20, 1 << 20], ..NucConfig::bios() };
        let line = line(&two);
        let at = |text: &str| line.find(text).expect(text);
        assert!(at("serial=TINBOX3,") < at("serial=TINBOX3-2"));
        assert!(at("serial=TINBOX3-2") < at("serial=TINBOX3-3"));
        assert!(line.contains("file=/w/disk.2.img"), "{line}");
    }

    #[test]
    fn other_disks_have_their_own_controllers() {
        assert!(!line(&NucConfig::bios()).contains("nvme"));
        let sizes = (Some(1 << 20), Some(1 << 20));
        let both = NucConfig { nvme_disk: sizes.0, sata_disk: sizes.1, ..NucConfig::bios() };
        let line = line(&both);
        assert!(line.contains("nvme,drive=nvme-drive,id=nvme,serial=TINBOX3-NVME"), "{line}");
        assert!(line.contains("ide-hd,bus=ide.0,drive=sata-drive,id=sata,serial=TINBOX3-SATA"));
        assert!(line.contains("file=/w/disk.nvme.img") && line.contains("file=/w/disk.sata.img"));
    }

    #[test]
    fn identity_follows_the_number() {
        let line = line(&NucConfig::bios());
        assert!(line.contains("mac=52:54:00:77:00:03,"), "{line}");
        assert!(line.contains("-uuid 77777777-0000-4000-8000-000000000003"), "{line}");
    }

    #[test]
    fn every_order_and_override_has_its_place() {
        use BootDevice::{Disk, Network, Normal};
        use BootOrder::{DiskFirst, NetworkFirst};
        let net_first = [(NetworkFirst, Normal), (NetworkFirst, Network), (DiskFirst, Network)];
        let disk_first = [(DiskFirst, Normal), (DiskFirst, Disk), (NetworkFirst, Disk)];
        for (order, once) in net_first {
            assert!(nic_index(order, once) < DISK_INDEX, "{order:?} {once:?}");
        }
        for (order, once) in disk_first {
            assert!(nic_index(order, once) > DISK_INDEX, "{order:?} {once:?}");
        }
    }
}
