//! DHCP messages as clients write and read them, with the options recorded from each client. The
//! codec is dhcproto, not the server's own: a bug on one side must not hide the same bug on the
//! other.

use std::net::Ipv4Addr;

use dhcproto::Encodable as _;
use dhcproto::v4::{
    Architecture, DhcpOption, Flags, Message, Opcode, OptionCode, UnknownOption, borrowed,
};
use stdx::MacAddr;

/// DHCPDISCOVER, client to server. This constant and the next six are message types (option 53).
pub const DISCOVER: u8 = 1;
/// DHCPOFFER, server to client; see [`DISCOVER`].
pub const OFFER: u8 = 2;
/// DHCPREQUEST, client to server; see [`DISCOVER`].
pub const REQUEST: u8 = 3;
/// DHCPDECLINE, client to server; see [`DISCOVER`].
pub const DECLINE: u8 = 4;
/// DHCPACK, server to client; see [`DISCOVER`].
pub const ACK: u8 = 5;
/// DHCPNAK, server to client; see [`DISCOVER`].
pub const NAK: u8 = 6;
/// DHCPRELEASE, client to server; see [`DISCOVER`].
pub const RELEASE: u8 = 7;

/// Bytes of an Ethernet address (`hlen`).
const ETHERNET: u8 = 6;
/// Shortest message that every relay and server accepts (RFC 951), bytes.
const SHORTEST: usize = 300;

/// DHCP clients of one boot: firmware, loader or system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Client {
    /// EDK2's PXE client on x86-64.
    Edk2Pxe,
    /// EDK2's HTTP Boot client on x86-64.
    Edk2Http,
    /// A BIOS' PXE ROM.
    BiosPxe,
    /// iPXE as the ROM of a BIOS, or loaded by a BIOS.
    IpxeBios,
    /// iPXE built for UEFI.
    IpxeEfi,
    /// The DHCP client of the agent's system, or of an installed system.
    System,
}

/// Contents of a client's message.
#[derive(Debug, Clone, Copy)]
pub struct Ask {
    /// DHCP message type (option 53).
    pub kind: u8,
    /// Transaction ID of the exchange.
    pub xid: u32,
    /// Hardware address of the client.
    pub mac: MacAddr,
    /// The address in use, or 0.0.0.0.
    pub ciaddr: Ipv4Addr,
    /// Address of the relay, or 0.0.0.0; the simulated network sets it.
    pub giaddr: Ipv4Addr,
    /// Requested address (option 50).
    pub requested: Option<Ipv4Addr>,
    /// Server identifier (option 54).
    pub server: Option<Ipv4Addr>,
}

impl Ask {
    /// The message, as this client writes it.
    pub fn write(&self, client: Client) -> Vec<u8> {
        let none = Ipv4Addr::UNSPECIFIED;
        let (ciaddr, giaddr) = (self.ciaddr, self.giaddr);
        let mut message = Message::new_with_id(self.xid, ciaddr, none, none, giaddr, &self.mac.0);
        // Messages to port 4011 and renewals need no broadcast answer.
        let is_rom = matches!(client, Client::Edk2Pxe | Client::Edk2Http | Client::BiosPxe);
        if is_rom && ciaddr.is_unspecified() {
            message.set_flags(Flags::default().set_broadcast());
        }
        let server = self.server.map(DhcpOption::ServerIdentifier);
        let requested = self.requested.map(DhcpOption::RequestedIpAddress);
        let kind = DhcpOption::MessageType(self.kind.into());
        let options = std::iter::once(kind).chain(server).chain(requested);
        message.set_opts(options.chain(self.class(client)).map(|it| ((&it).into(), it)).collect());
        let mut bytes = message.to_vec().expect("options of the field's clients");
        bytes.resize(bytes.len().max(SHORTEST), 0);
        bytes
    }

    /// Options by which a server recognizes the client.
    fn class(&self, client: Client) -> Vec<DhcpOption> {
        let (arch, class): (u16, &[u8]) = match client {
            Client::Edk2Pxe => (7, b"PXEClient:Arch:00007:UNDI:003000"),
            Client::IpxeEfi => (7, b"PXEClient:Arch:00007:UNDI:003010"),
            Client::Edk2Http => (16, b"HTTPClient:Arch:00016:UNDI:003000"),
            Client::BiosPxe | Client::IpxeBios => (0, b"PXEClient:Arch:00000:UNDI:002001"),
            Client::System => {
                return vec![
                    DhcpOption::MaxMessageSize(576),
                    wanted(&[1, 3, 6, 12, 15, 28, 42]),
                    DhcpOption::ClassIdentifier(b"udhcp 1.35.0".to_vec()),
                    self.client_identifier(),
                ];
            }
        };
        let mut options = vec![
            DhcpOption::MaxMessageSize(1472),
            wanted(&[1, 3, 6, 12, 15, 17, 43, 54, 60, 66, 67, 97, 128, 175]),
            DhcpOption::ClientSystemArchitecture(Architecture::from(arch)),
            DhcpOption::ClassIdentifier(class.to_vec()),
            DhcpOption::ClientMachineIdentifier([&[0; 11], &self.mac.0[..]].concat()),
        ];
        if matches!(client, Client::IpxeBios | Client::IpxeEfi) {
            // Features: DNS, HTTP, TFTP.
            let features = vec![0x17, 1, 1, 0x13, 1, 1, 0x15, 1, 1];
            options.extend([
                DhcpOption::UserClass(b"iPXE".to_vec()),
                DhcpOption::Unknown(UnknownOption::new(IPXE, features)),
                self.client_identifier(),
            ]);
        }
        options
    }

    fn client_identifier(&self) -> DhcpOption {
        DhcpOption::ClientIdentifier([&[1], &self.mac.0[..]].concat())
    }
}

/// Code of the option that encapsulates iPXE's own options.
const IPXE: OptionCode = OptionCode::Unknown(175);

fn wanted(codes: &[u8]) -> DhcpOption {
    DhcpOption::ParameterRequestList(codes.iter().map(|code| OptionCode::from(*code)).collect())
}

/// The part of a server's message that clients read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// DHCP message type (option 53).
    pub kind: u8,
    /// Transaction ID of the exchange.
    pub xid: u32,
    /// Hardware address of the receiving client.
    pub mac: MacAddr,
    /// The address given; 0.0.0.0: none.
    pub address: Ipv4Addr,
    /// Server identifier (option 54).
    pub server: Ipv4Addr,
    /// Lease time in seconds (option 51).
    pub lease_secs: u32,
    /// Name of the boot file: option 67, else the header's `file`. Empty: no boot file.
    pub file: String,
    /// True if suboption 6 of option 43 has bit 3 set, or suboption 176 of option 175 is 1: the
    /// client loads the file without a further request.
    pub direct: bool,
}

impl Reply {
    /// Reads a server's message; `None` for anything else.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let message = read(bytes, Opcode::BootReply)?;
        let option = |code: OptionCode| option(message.opts(), code);
        let address = |value: Vec<u8>| Some(Ipv4Addr::from(*value.first_chunk::<4>()?));
        let file = option(OptionCode::BootfileName).unwrap_or_else(|| message.fname().to_vec());
        let file = file.split(|byte| *byte == 0).next().unwrap_or_default();
        let control = option(OptionCode::VendorExtensions)
            .and_then(|inner| self::option(encapsulated(&inner), OptionCode::from(6)));
        let no_proxy = option(IPXE)
            .and_then(|inner| self::option(encapsulated(&inner), OptionCode::from(176)));
        Some(Self {
            kind: *option(OptionCode::MessageType)?.first()?,
            xid: message.xid(),
            mac: MacAddr(message.chaddr().try_into().ok()?),
            address: message.yiaddr(),
            server: address(option(OptionCode::ServerIdentifier)?)?,
            lease_secs: option(OptionCode::AddressLeaseTime)
                .and_then(|value| value.try_into().ok())
                .map_or(0, u32::from_be_bytes),
            file: String::from_utf8_lossy(file).into_owned(),
            direct: control.is_some_and(|value| value.first().is_some_and(|bits| bits & 8 != 0))
                || no_proxy.as_deref() == Some(&[1]),
        })
    }

    /// Writes an answer of another DHCP server: an address without boot options.
    pub fn write(&self) -> Vec<u8> {
        let none = Ipv4Addr::UNSPECIFIED;
        let mut message =
            Message::new_with_id(self.xid, none, self.address, none, none, &self.mac.0);
        message.set_opcode(Opcode::BootReply);
        let options = message.opts_mut();
        options.insert(DhcpOption::MessageType(self.kind.into()));
        options.insert(DhcpOption::ServerIdentifier(self.server));
        options.insert(DhcpOption::AddressLeaseTime(self.lease_secs));
        message.to_vec().expect("these options have a wire form")
    }
}

/// Reads the fields of [`Ask`] from a DHCP message; `None` for a message without them.
pub fn read_ask(bytes: &[u8]) -> Option<Ask> {
    // Both directions are read, because the trace prints any message.
    let message = read(bytes, Opcode::BootRequest).or_else(|| read(bytes, Opcode::BootReply))?;
    let address = |code| Some(Ipv4Addr::from(*option(message.opts(), code)?.first_chunk::<4>()?));
    Some(Ask {
        kind: *option(message.opts(), OptionCode::MessageType)?.first()?,
        xid: message.xid(),
        mac: MacAddr(message.chaddr().try_into().ok()?),
        ciaddr: message.ciaddr(),
        giaddr: message.giaddr(),
        requested: address(OptionCode::RequestedIpAddress),
        server: address(OptionCode::ServerIdentifier),
    })
}

/// A message with this opcode from an Ethernet station; `None` for anything else.
fn read(bytes: &[u8], opcode: Opcode) -> Option<borrowed::Message<'_>> {
    let message = borrowed::Message::new(bytes).ok()?;
    // The length is checked first: `chaddr` does not check it.
    (message.opcode() == opcode && message.hlen() == ETHERNET).then_some(message)
}

/// Options inside an option.
fn encapsulated(value: &[u8]) -> borrowed::DhcpOptionIterator<'_> {
    borrowed::DhcpOptionIterator::new(value)
}

/// The value of an option's first appearance.
fn option(mut options: borrowed::DhcpOptionIterator<'_>, code: OptionCode) -> Option<Vec<u8>> {
    options.find(|option| option.code() == code).map(|option| option.data().to_vec())
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
