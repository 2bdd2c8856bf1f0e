//! Every boot of the matrix, and the boots of CI.
//!
//! The NICs only test iPXE's drivers, which are not ours, so CI boots each method on one NIC. That
//! is virtio where the ROM supports no other, and otherwise the e1000e, which NUCs have and for
//! which the agent's kernel needs a driver. `BOOT_MATRIX=all` boots every row.

use scenarios::{BootPath, Firmware, Nic, Segment};

use BootPath::{BiosIpxeRom, BiosPlainPxe, UefiHttp4, UefiIpxeRom, UefiPxe4, UefiPxe6};
use Goal::{Agent, Direct, Files, Script};
use Network::{Ipv6, Pool, ProxyDnsmasq, ProxyKea, Relay, Reserved, WithoutIpxe};
use Nic::{E1000, E1000e, Rtl8139, Virtio, Vmxnet3};
use Tier::{Ci, Soak};

/// Last step of a row's machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Goal {
    /// The agent runs, has requested work and reported its result.
    Agent,
    /// As [`Self::Agent`], without iPXE: the firmware loads the agent OS itself.
    Direct,
    /// Kernel and initramfs are loaded. The agent's kernel has no driver for this NIC, which no NUC
    /// has.
    Files,
    /// The script is loaded. Another row of the same method goes further; over UNDI every file is
    /// slow.
    Script,
}

/// DHCP mode of the box, and the other DHCP server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// Each machine has a reservation.
    Reserved,
    /// Each machine has a reservation, and is behind a relay.
    Relay,
    /// Addresses come from the box's pool.
    Pool,
    /// Addresses come from Kea, and the box answers beside it.
    ProxyKea,
    /// Addresses come from dnsmasq, and the box answers beside it.
    ProxyDnsmasq,
    /// The firmware loads the agent OS's unified kernel image.
    WithoutIpxe,
    /// The box answers over IPv6 too.
    Ipv6,
}

/// Runs in which a row is booted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tier {
    /// In CI and in the soak.
    Ci,
    /// Only in a run with `BOOT_MATRIX=all`.
    Soak,
}

/// Boot of one machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    pub network: Network,
    pub path: BootPath,
    pub nic: Nic,
    pub goal: Goal,
    pub tier: Tier,
}

impl Row {
    /// The network segment of the machine.
    pub fn segment(self) -> Segment {
        if self.network == Relay { Segment::Far } else { Segment::Near }
    }
}

const fn row(network: Network, path: BootPath, nic: Nic, goal: Goal, tier: Tier) -> Row {
    Row { network, path, nic, goal, tier }
}

/// All rows of the matrix.
pub const ROWS: [Row; 37] = [
    row(Reserved, BiosIpxeRom, Virtio, Agent, Soak),
    row(Reserved, BiosIpxeRom, E1000e, Agent, Ci),
    row(Reserved, BiosIpxeRom, E1000, Agent, Soak),
    row(Reserved, BiosIpxeRom, Rtl8139, Files, Soak),
    row(Reserved, BiosIpxeRom, Vmxnet3, Files, Soak),
    row(Reserved, BiosPlainPxe, Virtio, Agent, Ci),
    row(Reserved, BiosPlainPxe, E1000e, Script, Soak),
    row(Reserved, BiosPlainPxe, E1000, Script, Soak),
    row(Reserved, UefiPxe4, Virtio, Agent, Ci),
    row(Reserved, UefiHttp4, Virtio, Agent, Ci),
    row(Reserved, UefiIpxeRom, Virtio, Agent, Soak),
    row(Reserved, UefiIpxeRom, E1000e, Agent, Ci),
    row(Reserved, UefiIpxeRom, E1000, Agent, Soak),
    row(Reserved, UefiIpxeRom, Rtl8139, Files, Soak),
    row(Reserved, UefiIpxeRom, Vmxnet3, Files, Soak),
    row(Relay, BiosIpxeRom, E1000e, Agent, Ci),
    row(Relay, BiosPlainPxe, Virtio, Script, Soak),
    row(Relay, UefiPxe4, Virtio, Agent, Soak),
    row(Relay, UefiHttp4, Virtio, Agent, Soak),
    row(Pool, BiosIpxeRom, E1000e, Agent, Soak),
    row(Pool, BiosIpxeRom, E1000, Script, Soak),
    row(Pool, BiosPlainPxe, Virtio, Script, Soak),
    row(Pool, UefiPxe4, Virtio, Agent, Ci),
    row(Pool, UefiHttp4, Virtio, Script, Soak),
    row(ProxyKea, BiosIpxeRom, E1000e, Agent, Soak),
    row(ProxyKea, BiosIpxeRom, E1000, Script, Soak),
    row(ProxyKea, BiosPlainPxe, Virtio, Script, Soak),
    row(ProxyKea, UefiPxe4, Virtio, Agent, Ci),
    row(ProxyKea, UefiHttp4, Virtio, Script, Soak),
    row(ProxyDnsmasq, BiosIpxeRom, E1000e, Agent, Soak),
    row(ProxyDnsmasq, BiosIpxeRom, E1000, Script, Soak),
    row(ProxyDnsmasq, BiosPlainPxe, Virtio, Script, Ci),
    row(ProxyDnsmasq, UefiPxe4, Virtio, Agent, Soak),
    row(ProxyDnsmasq, UefiHttp4, Virtio, Script, Soak),
    row(WithoutIpxe, UefiHttp4, Virtio, Direct, Ci),
    row(WithoutIpxe, UefiPxe4, Virtio, Direct, Soak),
    row(Ipv6, UefiPxe6, Virtio, Script, Ci),
];

/// The rows of a test: those of its network and firmware, all of them or the ones for CI.
pub fn selected(network: Network, firmware: &[Firmware], all: bool) -> Vec<Row> {
    let wanted = |row: &&Row| {
        row.network == network && firmware.contains(&row.path.firmware()) && (all || row.tier == Ci)
    };
    ROWS.iter().filter(wanted).copied().collect()
}

/// Both kinds of firmware.
pub const BOTH: [Firmware; 2] = [Firmware::Bios, Firmware::Uefi];

/// True when `BOOT_MATRIX` is `all`: every row is booted.
pub fn boots_all() -> bool {
    match std::env::var("BOOT_MATRIX").as_deref() {
        Err(_) => false,
        Ok("all") => true,
        Ok(other) => panic!("BOOT_MATRIX is not set, or \"all\"; found {other:?}"),
    }
}

mod tests {
    use super::*;

    const NETWORKS: [Network; 7] =
        [Reserved, Relay, Pool, ProxyKea, ProxyDnsmasq, WithoutIpxe, Ipv6];
    const PATHS: [BootPath; 6] =
        [BiosIpxeRom, BiosPlainPxe, UefiPxe4, UefiHttp4, UefiPxe6, UefiIpxeRom];

    fn rows(all: bool) -> Vec<Row> {
        NETWORKS.iter().flat_map(|network| selected(*network, &BOTH, all)).collect()
    }

    #[test]
    fn a_soak_boots_every_row() {
        assert_eq!(rows(true), ROWS);
        for (at, row) in ROWS.iter().enumerate() {
            let twice = |other: &Row| {
                (other.network, other.path, other.nic) == (row.network, row.path, row.nic)
            };
            assert!(!ROWS[..at].iter().any(twice), "{row:?} is there twice");
        }
    }

    #[test]
    fn ci_boots_every_rom_in_every_network_on_one_card_each() {
        let ci = rows(false);
        assert_eq!(ci.len(), 11, "{ci:?}");
        for path in PATHS {
            let cards: Vec<Nic> =
                ci.iter().filter(|row| row.path == path).map(|row| row.nic).collect();
            assert!(!cards.is_empty(), "{path:?} is booted by nothing");
            assert!(cards.iter().all(|card| *card == cards[0]), "{path:?}: {cards:?}");
        }
        for network in NETWORKS {
            assert!(ci.iter().any(|row| row.network == network), "{network:?} boots nothing");
        }
        let firmware_beside = |networks: &[Network]| {
            let rows = ci.iter().filter(|row| networks.contains(&row.network));
            let mut firmware: Vec<Firmware> = rows.map(|row| row.path.firmware()).collect();
            firmware.dedup();
            firmware.len()
        };
        for networks in [&[Reserved][..], &[Relay, Pool], &[ProxyKea, ProxyDnsmasq]] {
            assert_eq!(firmware_beside(networks), 2, "{networks:?}: BIOS and UEFI");
        }
        // Every method that reaches the agent in a soak also reaches it in CI.
        for path in PATHS {
            let far = |rows: &[Row]| rows.iter().any(|row| row.path == path && row.goal == Agent);
            assert_eq!(far(&ci), far(&ROWS), "{path:?}");
        }
        assert!(ci.iter().any(|row| row.goal == Direct));
    }
}
