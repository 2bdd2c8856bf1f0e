//! What a rack should look like; plain values, nothing is started here.

use std::path::PathBuf;

use crate::Error;

/// Most NUCs one rack can have: their numbers appear in one decimal byte of every address.
pub const MAX_NUCS: usize = 99;

/// The firmware a NUC starts with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Firmware {
    /// SeaBIOS.
    Bios,
    /// OVMF: EDK2 for virtual machines.
    Uefi,
}

/// How a NUC's firmware goes about a network boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BootPath {
    /// SeaBIOS; the network card's option ROM is iPXE and says so.
    BiosIpxeRom,
    /// SeaBIOS with an option ROM that speaks plain PXE, as those of network cards on sale do.
    BiosPlainPxe,
    /// OVMF, booting with EDK2's own PXE client over IPv4.
    UefiPxe4,
    /// OVMF, booting with EDK2's own HTTP Boot client over IPv4.
    UefiHttp4,
    /// OVMF, booting with EDK2's own PXE client over IPv6.
    UefiPxe6,
    /// OVMF; the network card's option ROM is iPXE's EFI driver, which takes the boot over.
    UefiIpxeRom,
}

impl BootPath {
    /// The firmware that it belongs to.
    pub fn firmware(self) -> Firmware {
        match self {
            Self::BiosIpxeRom | Self::BiosPlainPxe => Firmware::Bios,
            Self::UefiPxe4 | Self::UefiHttp4 | Self::UefiPxe6 | Self::UefiIpxeRom => Firmware::Uefi,
        }
    }

    /// Whether EDK2's own clients boot, so that no option ROM may be there.
    pub(crate) fn is_pure_edk2(self) -> bool {
        matches!(self, Self::UefiPxe4 | Self::UefiHttp4 | Self::UefiPxe6)
    }
}

/// The network card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nic {
    /// `virtio-net-pci`: the only one EDK2 itself has a driver for.
    Virtio,
    /// `e1000e`, nearest to a real NUC's I219.
    E1000e,
    /// `e1000`, its predecessor: slow to bring its link up, so that its first packet is lost.
    E1000,
    /// `rtl8139`, the cheap card of old.
    Rtl8139,
    /// `vmxnet3`, VMware's.
    Vmxnet3,
}

impl Nic {
    /// As QEMU names it.
    pub fn device(self) -> &'static str {
        match self {
            Self::Virtio => "virtio-net-pci",
            Self::E1000e => "e1000e",
            Self::E1000 => "e1000",
            Self::Rtl8139 => "rtl8139",
            Self::Vmxnet3 => "vmxnet3",
        }
    }
}

/// A part of the rack's network: what one broadcast reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Segment {
    /// The box's own, 10.77.0.0/24.
    Near,
    /// Another, 10.78.0.0/24; nothing joins the two until a [`crate::Relay`] does.
    Far,
}

impl Segment {
    pub(crate) fn bridge(self) -> &'static str {
        match self {
            Self::Near => "br0",
            Self::Far => "br1",
        }
    }
}

/// The machine's own, permanent boot order, as set in its firmware setup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BootOrder {
    /// Network, then disk.
    NetworkFirst,
    /// Disk, then network; a blank disk falls through to the network.
    DiskFirst,
}

/// One NUC.
#[derive(Debug, Clone)]
pub struct NucConfig {
    /// The firmware and its way to boot from the network.
    pub path: BootPath,
    /// The network card.
    pub nic: Nic,
    /// Where its network cable ends.
    pub segment: Segment,
    /// RAM in MiB.
    pub memory_mib: u32,
    /// Virtual CPUs; more than one is slower under emulation.
    pub cpus: u8,
    /// QEMU's `-cpu` argument.
    pub cpu: String,
    /// Size of the disk (`/dev/vda`) in bytes; the backing file is sparse.
    pub disk_bytes: u64,
    /// A place on the disk, in bytes, where every write fails with EIO: a dying disk.
    pub unwritable: Option<u64>,
    /// Sizes of more disks (`/dev/vdb` and on), sparse too; no firmware boots from them.
    pub more_disks: Vec<u64>,
    /// Size of an NVMe disk (`/dev/nvme0n1`), which can format itself.
    pub nvme_disk: Option<u64>,
    /// Size of a SATA disk (`/dev/sda`), which has SMART and no security.
    pub sata_disk: Option<u64>,
    /// A VLAN that its switch port has tagged, beside the native one.
    pub vlan: Option<u16>,
    /// The permanent boot order.
    pub boot_order: BootOrder,
}

impl NucConfig {
    /// A SeaBIOS machine: 512 MiB, 4 GiB disk, virtio network, disk first.
    pub fn bios() -> Self {
        Self {
            path: BootPath::BiosIpxeRom,
            nic: Nic::Virtio,
            segment: Segment::Near,
            memory_mib: 512,
            cpus: 1,
            // RDRAND as every NUC has it: without, a guest waits for entropy.
            cpu: "qemu64,+rdrand,+popcnt".to_owned(),
            disk_bytes: 4 << 30,
            unwritable: None,
            more_disks: Vec::new(),
            nvme_disk: None,
            sata_disk: None,
            vlan: None,
            boot_order: BootOrder::DiskFirst,
        }
    }

    /// The same with OVMF and EDK2's own PXE client.
    pub fn uefi() -> Self {
        Self { path: BootPath::UefiPxe4, ..Self::bios() }
    }

    /// SeaBIOS or OVMF.
    pub fn firmware(&self) -> Firmware {
        self.path.firmware()
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.path.is_pure_edk2() && self.nic != Nic::Virtio {
            let (path, nic) = (self.path, self.nic.device());
            return Err(Error::Config(format!("{path:?} needs virtio: EDK2 cannot drive {nic}")));
        }
        if self.path == BootPath::BiosPlainPxe && self.vlan.is_some() {
            return Err(Error::Config("a plain ROM and a VLAN want one place".to_owned()));
        }
        Ok(())
    }
}

/// A whole rack.
#[derive(Debug, Clone)]
pub struct RackConfig {
    /// Appears in messages; a scenario's name.
    pub name: String,
    /// Where logs, screenshots and the capture go. The harness makes it and empties it of its own
    /// files when [`crate::Rack::succeed`] is called.
    pub dir: PathBuf,
    /// The NUCs; the first has number 1.
    pub nucs: Vec<NucConfig>,
    /// Keep `dir` even after success.
    pub keep: bool,
    /// A tcpdump filter: everything matching on the bridge is written to `dir/rack.pcap`.
    pub capture: Option<String>,
}

impl RackConfig {
    /// An empty rack whose logs go to `out/NAME` of this workspace.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            dir: out_dir().join(name),
            nucs: Vec::new(),
            keep: false,
            capture: None,
        }
    }

    /// Adds one NUC.
    #[must_use]
    pub fn nuc(mut self, nuc: NucConfig) -> Self {
        self.nucs.push(nuc);
        self
    }

    /// Adds `count` equal NUCs.
    #[must_use]
    pub fn nucs(mut self, count: usize, nuc: &NucConfig) -> Self {
        self.nucs.extend(std::iter::repeat_n(nuc, count).cloned());
        self
    }

    /// Captures what matches `filter` (tcpdump's language; empty for everything).
    #[must_use]
    pub fn capture(mut self, filter: &str) -> Self {
        self.capture = Some(filter.to_owned());
        self
    }
}

/// The workspace's `out/` folder, which git ignores.
pub fn out_dir() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../out")
}
