//! Messages of firmware and clients, with the options as captured, and fakes of the traits.

use std::net::Ipv4Addr;
use std::sync::Mutex;

use stdx::MacAddr;

use crate::{Config, DhcpEvent, Directory, FixedAddress, Netboot, Observer, Reservation};

pub const MAC: MacAddr = MacAddr([0x52, 0x54, 0, 0x77, 0, 1]);
pub const SERVER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
pub const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 11);
pub const FIXED: FixedAddress =
    FixedAddress { address: ADDRESS, netmask: Ipv4Addr::new(255, 255, 255, 0) };
/// Value of option 97 for the UUID 77777777-0000-4000-8000-000000000001, in SMBIOS order.
pub const MACHINE_ID: [u8; 17] =
    [0, 0x77, 0x77, 0x77, 0x77, 0, 0, 0, 0x40, 0x80, 0, 0, 0, 0, 0, 0, 1];

pub const DISCOVER: u8 = 1;
pub const REQUEST: u8 = 3;

/// Message of a client: the header, then options in insertion order.
#[derive(Clone)]
pub struct Packet {
    pub bytes: Vec<u8>,
}

impl Packet {
    pub fn new(flags: u16) -> Self {
        let mut bytes = vec![0; 240];
        bytes[..4].copy_from_slice(&[1, 1, 6, 0]);
        bytes[4..8].copy_from_slice(&[0xde, 0xad, 0xbe, 0xef]);
        bytes[10..12].copy_from_slice(&flags.to_be_bytes());
        bytes[28..34].copy_from_slice(&MAC.0);
        bytes[236..].copy_from_slice(&[99, 130, 83, 99]);
        Self { bytes }
    }

    pub fn option(mut self, code: u8, value: &[u8]) -> Self {
        self.bytes.extend([code, value.len() as u8]);
        self.bytes.extend(value);
        self
    }

    pub fn at(mut self, offset: usize, value: &[u8]) -> Self {
        self.bytes[offset..offset + value.len()].copy_from_slice(value);
        self
    }

    pub fn ciaddr(self, address: Ipv4Addr) -> Self {
        self.at(12, &address.octets())
    }

    pub fn giaddr(self, address: Ipv4Addr) -> Self {
        self.at(24, &address.octets())
    }

    pub fn mac(self, mac: MacAddr) -> Self {
        self.at(28, &mac.0)
    }

    pub fn end(mut self) -> Vec<u8> {
        self.bytes.push(255);
        self.bytes
    }
}

const IPXE_WANTS: [u8; 23] = [
    1, 3, 6, 7, 12, 15, 17, 26, 43, 60, 66, 67, 119, 128, 129, 130, 131, 132, 133, 134, 135, 175,
    203,
];

fn features(list: &[u8]) -> Vec<u8> {
    let mut value = vec![0xb1, 5, 1, 0x1a, 0xf4, 0x10, 0, 0xeb, 3, 1, 0, 0];
    for feature in list {
        value.extend([*feature, 1, if *feature == 0x10 { 2 } else { 1 }]);
    }
    value
}

/// Message of Debian's iPXE of 2019 as a BIOS option ROM, and of `undionly.kpxe`.
pub fn ipxe_bios(kind: u8) -> Packet {
    Packet::new(0)
        .at(8, &[0, 4])
        .option(53, &[kind])
        .option(57, &[5, 0xc0])
        .option(93, &[0, 0])
        .option(94, &[1, 2, 1])
        .option(60, b"PXEClient:Arch:00000:UNDI:002001")
        .option(77, b"iPXE")
        .option(55, &IPXE_WANTS)
        .option(
            175,
            &features(&[0x17, 0x22, 0x13, 0x11, 0x27, 0x19, 0x29, 0x10, 0x21, 0x15, 0x18, 0x12]),
        )
        .option(61, &[1, 0x52, 0x54, 0, 0x77, 0, 1])
        .option(97, &MACHINE_ID)
}

/// Message of an iPXE for UEFI: ROM or `snponly.efi`.
pub fn ipxe_efi(kind: u8) -> Packet {
    Packet::new(0)
        .at(8, &[0, 4])
        .option(53, &[kind])
        .option(57, &[5, 0xc0])
        .option(93, &[0, 7])
        .option(94, &[1, 3, 10])
        .option(60, b"PXEClient:Arch:00007:UNDI:003010")
        .option(77, b"iPXE")
        .option(55, &IPXE_WANTS)
        .option(175, &features(&[0x17, 0x13, 0x11, 0x27, 0x29, 0x15, 0x12, 0x24]))
        .option(61, &[1, 0x52, 0x54, 0, 0x77, 0, 1])
        .option(97, &MACHINE_ID)
}

/// Message of Tinkerbell's iPXE 1.21.1+, after its script set the user class.
pub fn tinkerbell(kind: u8) -> Packet {
    let mut wants = IPXE_WANTS.to_vec();
    wants.extend([42, 121]);
    let mut features = features(&[0x17, 0x13, 0x14, 0x11, 0x27, 0x29, 0x15, 0x12, 0x24, 0x26]);
    features[9..12].copy_from_slice(&[1, 0x15, 1]);
    Packet::new(0x8000)
        .option(53, &[kind])
        .option(57, &[5, 0xc0])
        .option(93, &[0, 7])
        .option(94, &[1, 3, 10])
        .option(60, b"PXEClient:Arch:00007:UNDI:003010")
        .option(77, b"Tinkerbell")
        .option(55, &wants)
        .option(175, &features)
        .option(61, &[1, 0x52, 0x54, 0, 0x77, 0, 1])
        .option(97, &MACHINE_ID)
}

/// Message of EDK2's PXE client, which sends no option 61.
pub fn edk2_pxe(kind: u8) -> Packet {
    let mut wants: Vec<u8> = vec![
        1, 2, 3, 4, 5, 6, 12, 13, 15, 17, 18, 22, 23, 28, 40, 41, 42, 43, 50, 51, 54, 58, 59, 60,
        66, 67, 97,
    ];
    wants.extend(128..=135);
    let packet = Packet::new(0x8000).option(53, &[kind]);
    let packet = if kind == REQUEST {
        packet.option(54, &SERVER.octets()).option(50, &ADDRESS.octets()).option(57, &[0xff, 0])
    } else {
        packet.option(57, &[5, 0xc0])
    };
    packet
        .option(55, &wants)
        .option(97, &MACHINE_ID)
        .option(94, &[1, 3, 0])
        .option(93, &[0, 7])
        .option(60, b"PXEClient:Arch:00007:UNDI:003000")
}

/// Message of EDK2's HTTP Boot client.
pub fn edk2_http(kind: u8) -> Packet {
    Packet::new(0x8000)
        .option(53, &[kind])
        .option(57, &[5, 0xc0])
        .option(
            55,
            &[
                1, 2, 3, 4, 5, 6, 12, 13, 15, 17, 18, 22, 23, 28, 40, 41, 42, 43, 50, 51, 54, 58,
                59, 60, 235, 67, 97,
            ],
        )
        .option(97, &MACHINE_ID)
        .option(94, &[1, 3, 0])
        .option(93, &[0, 16])
        .option(60, b"HTTPClient:Arch:00016:UNDI:003000")
}

/// Message of a BIOS PXE ROM that is not iPXE (with the DISCOVER of the PXE 2.1 specification).
pub fn bios_pxe(kind: u8) -> Packet {
    Packet::new(0x8000)
        .option(53, &[kind])
        .option(55, &[1, 2, 3, 5, 6, 11, 12, 13, 15, 16, 17, 18, 43, 54, 60, 66, 67, 128, 135])
        .option(57, &[4, 0xec])
        .option(97, &MACHINE_ID)
        .option(93, &[0, 0])
        .option(94, &[1, 2, 1])
        .option(60, b"PXEClient:Arch:00000:UNDI:002001")
}

/// Message of Busybox's DHCP client.
pub fn udhcpc(kind: u8) -> Packet {
    Packet::new(0)
        .option(53, &[kind])
        .option(57, &[2, 0x40])
        .option(55, &[1, 3, 6, 12, 15, 28, 42])
        .option(60, b"udhcp 1.35.0")
        .option(61, &[1, 0x52, 0x54, 0, 0x77, 0, 1])
}

/// Returns a REQUEST that accepts this server's offer.
pub fn selecting(packet: Packet) -> Packet {
    packet.option(54, &SERVER.octets()).option(50, &ADDRESS.octets())
}

pub fn config() -> Config {
    Config::new("br0", SERVER)
}

/// Returns the reservation of [`MAC`], with the usual fields of a hardware record.
pub fn machine() -> Reservation {
    Reservation {
        hostname: Some("nuc-01".to_owned()),
        gateway: Some(SERVER),
        name_servers: vec![Ipv4Addr::new(10, 77, 0, 1), Ipv4Addr::new(9, 9, 9, 9)],
        time_servers: vec![SERVER],
        domain_name: Some("rack.example".to_owned()),
        netboot: Netboot::Allowed,
        installing: true,
        ..Reservation::new(MAC, ADDRESS, Ipv4Addr::new(255, 255, 255, 0))
    }
}

/// Directory with one machine.
pub struct One(pub Reservation);

impl Directory for One {
    fn by_mac(&self, mac: MacAddr) -> Option<Reservation> {
        (mac == self.0.mac).then(|| self.0.clone())
    }

    fn is_reserved(&self, address: Ipv4Addr) -> bool {
        self.0.fixed.is_some_and(|fixed| fixed.address == address)
    }
}

/// Observer that records all events.
#[derive(Default)]
pub struct EventLog(Mutex<Vec<DhcpEvent>>);

impl EventLog {
    pub fn take(&self) -> Vec<DhcpEvent> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl Observer for EventLog {
    fn observe(&self, event: DhcpEvent) {
        self.0.lock().unwrap().push(event);
    }
}
