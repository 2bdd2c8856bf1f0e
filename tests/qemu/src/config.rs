//! Configuration of a rack: plain values, nothing is started here.

use std::path::PathBuf;

use crate::Error;

/// Maximum number of NUCs in one rack; their BMCs have the addresses 10.77.0.101 to 10.77.0.199.
pub const MAX_NUCS: usize = 99;

/// The firmware a NUC starts with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Firmware {
    /// SeaBIOS, a legacy BIOS.
    Bios,
    /// OVMF: EDK2 for virtual machines.
    Uefi,
}

/// Network boot method of a NUC's firmware.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BootPath {
    /// SeaBIOS; the NIC's option ROM is iPXE and identifies itself as iPXE.
    BiosIpxeRom,
    /// SeaBIOS with an option ROM that supports plain PXE only, as the ROMs of NICs on the market
    /// do.
    BiosPlainPxe,
    /// OVMF, booting with EDK2's own PXE client over IPv4.
    UefiPxe4,
    /// OVMF, booting with EDK2's own HTTP Boot client over IPv4.
    UefiHttp4,
    /// OVMF, booting with EDK2's own PXE client over IPv6.
    UefiPxe6,
    /// OVMF; the NIC's option ROM is iPXE's EFI driver, which takes over the boot.
    UefiIpxeRom,
}

impl BootPath {
    /// Firmware that has this boot method.
    pub fn firmware(self) -> Firmware {
        match self {
            Self::BiosIpxeRom | Self::BiosPlainPxe => Firmware::Bios,
            Self::UefiPxe4 | Self::UefiHttp4 | Self::UefiPxe6 | Self::UefiIpxeRom => Firmware::Uefi,
        }
    }

    /// True when EDK2's own clients boot, so that no option ROM may be present.
    pub(crate) fn is_pure_edk2(self) -> bool {
        matches!(self, Self::UefiPxe4 | Self::UefiHttp4 | Self::UefiPxe6)
    }
}

/// QEMU model of the NIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nic {
    /// `virtio-net-pci`: the only model that EDK2 itself has a driver for.
    Virtio,
    /// `e1000e`, the model closest to a real NUC's I219.
    E1000e,
    /// `e1000`, the predecessor of `e1000e`: its link comes up slowly, so that its first packet is
    /// lost.
    E1000,
    /// `rtl8139`, an old low-cost NIC.
    Rtl8139,
    /// `vmxnet3`, the NIC of VMware.
    Vmxnet3,
}

impl Nic {
    /// QEMU's name of the model.
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

/// A segment of the rack's network: one broadcast domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Segment {
    /// Segment of the box, 10.77.0.0/24.
    Near,
    /// Second segment, 10.78.0.0/24; only a [`crate::Relay`] connects the two.
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

/// Power control of all NUCs of a rack.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BmcKind {
    /// IPMI 2.0 over LAN, by OpenIPMI's `ipmi_sim`.
    #[default]
    Ipmi,
    /// No BMC: the NIC starts a machine that is off when it receives a magic packet.
    WakeOnLan,
    /// HTTP server that controls the chassis, with the requests and signatures of Tinkerbell's
    /// Rufio.
    Webhook,
    /// Intel AMT without TLS.
    Amt,
    /// Redfish with TLS and basic authentication, by OpenStack's sushy-emulator.
    Redfish,
    /// Port of a switch with Power over Ethernet, by SNMP version 3 of net-snmp.
    Poe,
}

/// The machine's own, permanent boot order, as set in its firmware setup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BootOrder {
    /// Network first, then disk.
    NetworkFirst,
    /// Disk, then network; a blank disk falls through to the network.
    DiskFirst,
}

/// Names of a machine in its SMBIOS data, structure type 1. No comma: QEMU separates options by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Model {
    /// Manufacturer of the machine.
    pub manufacturer: &'static str,
    /// Product name of the machine.
    pub product: &'static str,
}

/// Configuration of one NUC.
#[derive(Debug, Clone)]
pub struct NucConfig {
    /// Names of the machine in its SMBIOS data.
    pub model: Model,
    /// Firmware and network boot method.
    pub path: BootPath,
    /// Model of the NIC.
    pub nic: Nic,
    /// Segment of its network cable.
    pub segment: Segment,
    /// RAM in MiB; default 512.
    pub memory_mib: u32,
    /// Virtual CPUs; more than one is slower under emulation.
    pub cpus: u8,
    /// Argument of QEMU's `-cpu`.
    pub cpu: String,
    /// Size of the disk (`/dev/vda`) in bytes; the backing file is sparse.
    pub disk_bytes: u64,
    /// Offset on the disk, in bytes, at which every write fails with EIO, as on a failing disk.
    pub unwritable: Option<u64>,
    /// Sizes of more disks (`/dev/vdb` and on) in bytes, sparse too; no firmware boots from them.
    pub more_disks: Vec<u64>,
    /// Size of an NVMe disk (`/dev/nvme0n1`) in bytes, which supports Format NVM.
    pub nvme_disk: Option<u64>,
    /// Size of a SATA disk (`/dev/sda`) in bytes, which has SMART but no security feature set.
    pub sata_disk: Option<u64>,
    /// Tagged VLAN of the NUC's switch port, beside the native VLAN; `None` for a port without a
    /// tagged VLAN.
    pub vlan: Option<u16>,
    /// The permanent boot order.
    pub boot_order: BootOrder,
}

impl NucConfig {
    /// A SeaBIOS machine: 512 MiB, 4 GiB disk, virtio network, disk first.
    pub fn bios() -> Self {
        Self {
            model: Model { manufacturer: "Tinbox", product: "Virtual NUC" },
            path: BootPath::BiosIpxeRom,
            nic: Nic::Virtio,
            segment: Segment::Near,
            memory_mib: 512,
            cpus: 1,
            // Every NUC has RDRAND: without it a guest waits for entropy.
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

    /// [`NucConfig::bios`] with OVMF and EDK2's own PXE client.
    pub fn uefi() -> Self {
        Self { path: BootPath::UefiPxe4, ..Self::bios() }
    }

    /// Firmware of the boot method.
    pub fn firmware(&self) -> Firmware {
        self.path.firmware()
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.path.is_pure_edk2() && self.nic != Nic::Virtio {
            let (path, nic) = (self.path, self.nic.device());
            return Err(Error::Config(format!("{path:?} needs virtio: EDK2 cannot drive {nic}")));
        }
        if self.path == BootPath::BiosPlainPxe && self.vlan.is_some() {
            return Err(Error::Config("a plain ROM and a VLAN cannot be combined".to_owned()));
        }
        Ok(())
    }
}

/// Configuration of a whole rack.
#[derive(Debug, Clone)]
pub struct RackConfig {
    /// Folder for logs, screenshots and the capture. The harness creates the folder, and removes it
    /// when [`crate::Rack::succeed`] is called and `keep` is false.
    pub dir: PathBuf,
    /// The NUCs; the first has number 1.
    pub nucs: Vec<NucConfig>,
    /// Power control of the NUCs.
    pub bmc: BmcKind,
    /// True to keep `dir` even after success.
    pub keep: bool,
    /// A tcpdump filter: matching packets on the bridge are written to `dir/rack.pcap`.
    pub capture: Option<String>,
}

impl RackConfig {
    /// An empty rack whose logs go to `out/NAME` of this workspace.
    pub fn new(name: &str) -> Self {
        let (dir, bmc) = (out_dir().join(name), BmcKind::default());
        Self { dir, nucs: Vec::new(), bmc, keep: false, capture: None }
    }

    /// Adds a NUC with the next number.
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

    /// Selects the power control of the NUCs.
    #[must_use]
    pub fn bmc(mut self, bmc: BmcKind) -> Self {
        self.bmc = bmc;
        self
    }

    /// Captures packets that match `filter` (tcpdump's language; empty for all packets).
    #[must_use]
    pub fn capture(mut self, filter: &str) -> Self {
        self.capture = Some(filter.to_owned());
        self
    }
}

impl RackConfig {
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.nucs.len() > MAX_NUCS {
            return Err(Error::Config(format!("a rack has at most {MAX_NUCS} NUCs")));
        }
        let is_far = |nuc: &NucConfig| nuc.segment != Segment::Near;
        if self.bmc == BmcKind::WakeOnLan && self.nucs.iter().any(is_far) {
            return Err(Error::Config("magic packets reach only the box's segment".to_owned()));
        }
        self.nucs.iter().try_for_each(NucConfig::check)
    }
}

/// The workspace's `out/` folder, which git ignores.
pub fn out_dir() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../out")
}
