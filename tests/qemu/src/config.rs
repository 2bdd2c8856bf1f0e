//! What a rack should look like; plain values, nothing is started here.

use std::path::PathBuf;

/// Most NUCs one rack can have: their numbers appear in one decimal byte of every address.
pub const MAX_NUCS: usize = 99;

/// The firmware a NUC starts with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Firmware {
    /// SeaBIOS; the network card's iPXE option ROM does the network boot.
    Bios,
    /// OVMF; with [`Nic::Virtio`] EDK2's own PXE and HTTP clients do the network boot.
    Uefi,
}

/// The network card, as QEMU names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nic {
    /// `virtio-net-pci`: the only one pure EDK2 has a driver for.
    Virtio,
    /// `e1000e`, nearest to a real NUC's I219; iPXE's ROM boots it in both firmwares.
    E1000e,
}

impl Nic {
    pub(crate) fn device(self) -> &'static str {
        match self {
            Self::Virtio => "virtio-net-pci",
            Self::E1000e => "e1000e",
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
    /// SeaBIOS or OVMF.
    pub firmware: Firmware,
    /// The network card.
    pub nic: Nic,
    /// RAM in MiB.
    pub memory_mib: u32,
    /// Virtual CPUs; more than one is slower under emulation.
    pub cpus: u8,
    /// QEMU's `-cpu` argument.
    pub cpu: String,
    /// Size of the one disk (`/dev/vda`) in bytes; the backing file is sparse.
    pub disk_bytes: u64,
    /// The permanent boot order.
    pub boot_order: BootOrder,
}

impl NucConfig {
    /// A SeaBIOS machine: 512 MiB, 4 GiB disk, virtio network, disk first.
    pub fn bios() -> Self {
        Self {
            firmware: Firmware::Bios,
            nic: Nic::Virtio,
            memory_mib: 512,
            cpus: 1,
            // RDRAND as every NUC has it: without, a guest waits for entropy.
            cpu: "qemu64,+rdrand,+popcnt".to_owned(),
            disk_bytes: 4 << 30,
            boot_order: BootOrder::DiskFirst,
        }
    }

    /// The same with OVMF.
    pub fn uefi() -> Self {
        Self { firmware: Firmware::Uefi, ..Self::bios() }
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
