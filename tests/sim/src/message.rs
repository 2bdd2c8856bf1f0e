//! DHCP messages as clients write and read them, byte by byte as recorded from each. Independent of
//! the server's own encoder: what one side gets wrong must not cancel out on the other.

use std::net::Ipv4Addr;

use stdx::MacAddr;

/// Message types (option 53).
pub const DISCOVER: u8 = 1;
/// See [`DISCOVER`].
pub const OFFER: u8 = 2;
/// See [`DISCOVER`].
pub const REQUEST: u8 = 3;
/// See [`DISCOVER`].
pub const DECLINE: u8 = 4;
/// See [`DISCOVER`].
pub const ACK: u8 = 5;
/// See [`DISCOVER`].
pub const NAK: u8 = 6;
/// See [`DISCOVER`].
pub const RELEASE: u8 = 7;

const COOKIE: [u8; 4] = [99, 130, 83, 99];
const OPTIONS_AT: usize = 240;
const BROADCAST: u16 = 0x8000;

/// The programs that speak DHCP in one boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Client {
    /// EDK2's PXE client on x86-64.
    Edk2Pxe,
    /// EDK2's HTTP Boot client on x86-64.
    Edk2Http,
    /// A BIOS' PXE ROM.
    BiosPxe,
    /// iPXE in or through a BIOS.
    IpxeBios,
    /// iPXE for UEFI.
    IpxeEfi,
    /// The client of the agent's or an installed system.
    System,
}

/// What a client says.
#[derive(Debug, Clone, Copy)]
pub struct Ask {
    /// Option 53.
    pub kind: u8,
    /// The exchange's number.
    pub xid: u32,
    /// Who.
    pub mac: MacAddr,
    /// The address in use, or 0.0.0.0.
    pub ciaddr: Ipv4Addr,
    /// The relay's address, or 0.0.0.0; it is the wire that sets it.
    pub giaddr: Ipv4Addr,
    /// Option 50.
    pub requested: Option<Ipv4Addr>,
    /// Option 54.
    pub server: Option<Ipv4Addr>,
}

impl Ask {
    /// The message, as this client writes it.
    pub fn write(&self, client: Client) -> Vec<u8> {
        let mut bytes = vec![0; OPTIONS_AT];
        bytes[..4].copy_from_slice(&[1, 1, 6, 0]);
        bytes[4..8].copy_from_slice(&self.xid.to_be_bytes());
        let flags = match client {
            // To port 4011 and for a renewal no broadcast is wanted.
            Client::Edk2Pxe | Client::Edk2Http | Client::BiosPxe
                if self.ciaddr.is_unspecified() =>
            {
                BROADCAST
            }
            _ => 0,
        };
        bytes[10..12].copy_from_slice(&flags.to_be_bytes());
        bytes[12..16].copy_from_slice(&self.ciaddr.octets());
        bytes[24..28].copy_from_slice(&self.giaddr.octets());
        bytes[28..34].copy_from_slice(&self.mac.0);
        bytes[236..].copy_from_slice(&COOKIE);
        put(&mut bytes, 53, &[self.kind]);
        if let Some(server) = self.server {
            put(&mut bytes, 54, &server.octets());
        }
        if let Some(address) = self.requested {
            put(&mut bytes, 50, &address.octets());
        }
        self.write_class(client, &mut bytes);
        bytes.push(255);
        bytes.resize(bytes.len().max(300), 0);
        bytes
    }

    fn write_class(&self, client: Client, bytes: &mut Vec<u8>) {
        let (arch, class): (u16, &[u8]) = match client {
            Client::Edk2Pxe => (7, b"PXEClient:Arch:00007:UNDI:003000"),
            Client::IpxeEfi => (7, b"PXEClient:Arch:00007:UNDI:003010"),
            Client::Edk2Http => (16, b"HTTPClient:Arch:00016:UNDI:003000"),
            Client::BiosPxe | Client::IpxeBios => (0, b"PXEClient:Arch:00000:UNDI:002001"),
            Client::System => {
                put(bytes, 57, &576_u16.to_be_bytes());
                put(bytes, 55, &[1, 3, 6, 12, 15, 28, 42]);
                put(bytes, 60, b"udhcp 1.35.0");
                return put(bytes, 61, &[&[1], &self.mac.0[..]].concat());
            }
        };
        put(bytes, 57, &1472_u16.to_be_bytes());
        put(bytes, 55, &[1, 3, 6, 12, 15, 17, 43, 54, 60, 66, 67, 97, 128, 175]);
        put(bytes, 93, &arch.to_be_bytes());
        put(bytes, 60, class);
        put(bytes, 97, &[&[0; 11], &self.mac.0[..]].concat());
        if matches!(client, Client::IpxeBios | Client::IpxeEfi) {
            put(bytes, 77, b"iPXE");
            // Features: DNS, HTTP, TFTP.
            put(bytes, 175, &[0x17, 1, 1, 0x13, 1, 1, 0x15, 1, 1]);
            put(bytes, 61, &[&[1], &self.mac.0[..]].concat());
        }
    }
}

fn put(bytes: &mut Vec<u8>, code: u8, value: &[u8]) {
    bytes.extend([code, u8::try_from(value.len()).expect("an option of the field's clients")]);
    bytes.extend(value);
}

/// What a server says, as far as clients look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// Option 53.
    pub kind: u8,
    /// The exchange's number.
    pub xid: u32,
    /// To whom.
    pub mac: MacAddr,
    /// The address given; 0.0.0.0: none.
    pub address: Ipv4Addr,
    /// Option 54.
    pub server: Ipv4Addr,
    /// Option 51.
    pub lease_secs: u32,
    /// The boot file: option 67, else the header's; empty: none.
    pub file: String,
    /// 43.6 has bit 3 set, or 175.176 is there: the file can be loaded without asking further.
    pub direct: bool,
}

impl Reply {
    /// Reads a server's message; `None` for what is none.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let header: &[u8; OPTIONS_AT] = bytes.first_chunk()?;
        if header[0] != 2 || header[236..] != COOKIE {
            return None;
        }
        let options = &bytes[OPTIONS_AT..];
        let address = |value: &[u8]| Some(Ipv4Addr::from(*value.first_chunk::<4>()?));
        let file = option(options, 67).unwrap_or(&header[108..236]);
        let file = file.split(|byte| *byte == 0).next().unwrap_or_default();
        let control = option(options, 43).and_then(|inner| option(inner, 6));
        let no_proxy = option(options, 175).and_then(|inner| option(inner, 176));
        let mac = header[28..34].first_chunk().copied()?;
        Some(Self {
            kind: *option(options, 53)?.first()?,
            xid: u32::from_be_bytes(*header[4..8].first_chunk()?),
            mac: MacAddr(mac),
            address: address(&header[16..20])?,
            server: address(option(options, 54)?)?,
            lease_secs: option(options, 51)
                .and_then(|value| value.first_chunk().copied())
                .map_or(0, u32::from_be_bytes),
            file: String::from_utf8_lossy(file).into_owned(),
            direct: control.is_some_and(|value| value.first().is_some_and(|bits| bits & 8 != 0))
                || no_proxy == Some(&[1]),
        })
    }

    /// An answer of some other server: an address and nothing about boot.
    pub fn write(&self) -> Vec<u8> {
        let mut bytes = vec![0; OPTIONS_AT];
        bytes[..3].copy_from_slice(&[2, 1, 6]);
        bytes[4..8].copy_from_slice(&self.xid.to_be_bytes());
        bytes[16..20].copy_from_slice(&self.address.octets());
        bytes[28..34].copy_from_slice(&self.mac.0);
        bytes[236..].copy_from_slice(&COOKIE);
        put(&mut bytes, 53, &[self.kind]);
        put(&mut bytes, 54, &self.server.octets());
        put(&mut bytes, 51, &self.lease_secs.to_be_bytes());
        bytes.push(255);
        bytes
    }
}

/// What a server reads of a client's message: its type, exchange, client, option 54 and the address
/// it means (option 50, else `ciaddr`).
pub fn read_ask(bytes: &[u8]) -> Option<Ask> {
    let header: &[u8; OPTIONS_AT] = bytes.first_chunk()?;
    let options = &bytes[OPTIONS_AT..];
    let address = |code| Some(Ipv4Addr::from(*option(options, code)?.first_chunk::<4>()?));
    Some(Ask {
        kind: *option(options, 53)?.first()?,
        xid: u32::from_be_bytes(*header[4..8].first_chunk()?),
        mac: MacAddr(header[28..34].first_chunk().copied()?),
        ciaddr: Ipv4Addr::from(*header[12..16].first_chunk::<4>()?),
        giaddr: Ipv4Addr::from(*header[24..28].first_chunk::<4>()?),
        requested: address(50),
        server: address(54),
    })
}

/// The value of an option among others; parts of a long one are not put together.
fn option(mut options: &[u8], wanted: u8) -> Option<&[u8]> {
    loop {
        let (&code, rest) = options.split_first()?;
        match code {
            0 => options = rest,
            255 => return None,
            _ => {
                let (&length, rest) = rest.split_first()?;
                let (value, rest) = rest.split_at_checked(usize::from(length))?;
                if code == wanted {
                    return Some(value);
                }
                options = rest;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use stdx::MacAddr;

    use super::{ACK, Ask, Client, REQUEST, Reply, read_ask};

    #[test]
    fn messages_are_read_as_they_were_written() {
        let (address, server) = (Ipv4Addr::new(10, 1, 2, 3), Ipv4Addr::new(10, 0, 0, 1));
        let mac = MacAddr([2, 0, 0, 0, 0, 9]);
        let (none, xid) = (Ipv4Addr::UNSPECIFIED, 0x0102_0304);
        let (requested, server_id) = (Some(address), Some(server));
        let ask = Ask {
            kind: REQUEST,
            xid,
            mac,
            ciaddr: none,
            giaddr: none,
            requested,
            server: server_id,
        };
        let read = read_ask(&ask.write(Client::Edk2Pxe)).unwrap();
        assert_eq!((read.kind, read.xid, read.mac), (REQUEST, xid, mac));
        assert_eq!((read.requested, read.server), (requested, server_id));
        let file = String::new();
        let reply =
            Reply { kind: ACK, xid, mac, address, server, lease_secs: 60, file, direct: false };
        assert_eq!(Reply::read(&reply.write()), Some(reply));
        assert_eq!(Reply::read(&ask.write(Client::System)), None);
    }
}
