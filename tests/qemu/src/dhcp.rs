//! DHCP messages of a capture (RFC 2131, section 2), for tests of single fields.

use std::net::Ipv4Addr;
use std::time::SystemTime;

pub use dhcproto::v4::MessageType as Kind;
use dhcproto::v4::{OptionCode, borrowed};
use stdx::MacAddr;

use crate::Datagram;

/// Offset of the magic cookie in the message.
const COOKIE_AT: usize = 236;
const COOKIE: [u8; 4] = [0x63, 0x82, 0x53, 0x63];

/// One DHCP message as it crossed the bridge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// UDP datagram that contains the message.
    pub datagram: Datagram,
    /// DHCP message type (option 53).
    pub kind: Kind,
    /// Code and value of each option of the options field, in their order on the wire. Adjacent
    /// parts of one option are joined (RFC 3396), overloaded fields are not read.
    pub options: Vec<(u8, Vec<u8>)>,
}

impl Message {
    /// Reads a datagram; `None` when it is not a complete DHCP message.
    pub fn read(datagram: &Datagram) -> Option<Self> {
        let message = borrowed::Message::new(&datagram.payload).ok()?;
        if datagram.payload.get(COOKIE_AT..)?.first_chunk() != Some(&COOKIE) {
            return None;
        }
        let options = message.opts().map(|it| (it.code().into(), it.data().to_vec()));
        let options: Vec<(u8, Vec<u8>)> = options.collect();
        let code = u8::from(OptionCode::MessageType);
        let (_, kind) = options.iter().find(|(known, _)| *known == code)?;
        let kind = Kind::from(*kind.first()?);
        if let Kind::Unknown(_) = kind {
            return None;
        }
        Some(Self { datagram: datagram.clone(), kind, options })
    }

    /// Time at which the message crossed the bridge.
    pub fn at(&self) -> SystemTime {
        self.datagram.at
    }

    /// Value of the first option with this code; `None` without such an option.
    pub fn option(&self, code: u8) -> Option<&[u8]> {
        self.options.iter().find(|(known, _)| *known == code).map(|(_, value)| value.as_slice())
    }

    /// Value of the first option with this code as text; empty without such an option.
    pub fn text(&self, code: u8) -> String {
        String::from_utf8_lossy(self.option(code).unwrap_or_default()).into_owned()
    }

    /// Value of the first option with this code as an address; `None` without such an option, or
    /// for a value that is not four bytes long.
    pub fn address(&self, code: u8) -> Option<Ipv4Addr> {
        let octets: [u8; 4] = self.option(code)?.try_into().ok()?;
        Some(octets.into())
    }

    /// Field `op` of the header: 1 for a request, 2 for a reply.
    pub fn op(&self) -> u8 {
        self.datagram.payload.first().copied().unwrap_or_default()
    }

    /// Address assigned to the client.
    pub fn yiaddr(&self) -> Ipv4Addr {
        self.fixed_address(16)
    }

    /// Address of the server with the boot file.
    pub fn siaddr(&self) -> Ipv4Addr {
        self.fixed_address(20)
    }

    /// Address of the relay agent; 0.0.0.0 without a relay.
    pub fn giaddr(&self) -> Ipv4Addr {
        self.fixed_address(24)
    }

    /// The client's hardware address.
    pub fn chaddr(&self) -> MacAddr {
        MacAddr(self.bytes(28))
    }

    /// Boot file name of the header, not of option 67.
    pub fn file(&self) -> String {
        let field = self.datagram.payload.get(108..236).unwrap_or_default();
        let text = field.split(|byte| *byte == 0).next().unwrap_or_default();
        String::from_utf8_lossy(text).into_owned()
    }

    /// Server identifier (option 54).
    pub fn server(&self) -> Option<Ipv4Addr> {
        self.address(54)
    }

    fn fixed_address(&self, at: usize) -> Ipv4Addr {
        self.bytes::<4>(at).into()
    }

    fn bytes<const N: usize>(&self, at: usize) -> [u8; N] {
        let field = self.datagram.payload.get(at..).and_then(<[u8]>::first_chunk);
        field.copied().unwrap_or([0; N])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn datagram(options: &[u8]) -> Datagram {
        let mut payload = vec![0; COOKIE_AT + COOKIE.len()];
        payload.splice(16..28, [10, 77, 0, 11, 10, 77, 0, 1, 10, 78, 0, 1]);
        payload.splice(28..34, [0x52, 0x54, 0, 0x77, 0, 1]);
        payload.splice(108..113, *b"a.efi");
        payload.splice(COOKIE_AT.., COOKIE);
        payload.extend(options);
        Datagram {
            at: SystemTime::UNIX_EPOCH,
            from: MacAddr([0; 6]),
            source: "10.77.0.1:67".parse().expect("an address"),
            target: "255.255.255.255:68".parse().expect("an address"),
            payload,
        }
    }

    #[test]
    fn an_offer_is_read_field_by_field() {
        let read = Message::read(&datagram(b"\x35\x01\x02\x00\x36\x04\x0a\x4d\x00\x01\xff\x07"));
        let offer = read.expect("an offer");
        assert_eq!(offer.kind, Kind::Offer);
        assert_eq!(offer.yiaddr(), Ipv4Addr::new(10, 77, 0, 11));
        assert_eq!(offer.siaddr(), Ipv4Addr::new(10, 77, 0, 1));
        assert_eq!(offer.giaddr(), Ipv4Addr::new(10, 78, 0, 1));
        assert_eq!(offer.server(), Some(Ipv4Addr::new(10, 77, 0, 1)));
        assert_eq!(offer.chaddr().to_string(), "52:54:00:77:00:01");
        assert_eq!((offer.file().as_str(), offer.text(67).as_str()), ("a.efi", ""));
        assert_eq!(offer.options.len(), 2, "nothing is read behind the end");
    }

    #[test]
    fn what_is_no_message_or_cut_short_is_none() {
        let whole = datagram(b"\x35\x01\x02\x36\x04\x0a\x4d\x00\x01");
        for length in 0..COOKIE_AT + 7 {
            let mut cut = whole.clone();
            cut.payload.truncate(length);
            assert_eq!(Message::read(&cut), None, "{length}");
        }
        for kind in [0, 99] {
            assert_eq!(Message::read(&datagram(&[53, 1, kind])), None);
        }
    }
}
