//! ARP messages for IPv4 on Ethernet (RFC 826). The module opens no socket.

use std::net::Ipv4Addr;

use stdx::MacAddr;

/// Length of the Ethernet header and the 28 bytes of ARP.
const FRAME: usize = 42;
/// ARP header from the EtherType to the address lengths, for IPv4 over Ethernet.
const KIND: [u8; 8] = [0x08, 0x06, 0, 1, 0x08, 0, 6, 4];
const REQUEST: [u8; 2] = [0, 1];

/// Contents of an ARP request or reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArpMessage {
    /// Hardware address of the sender.
    pub mac: MacAddr,
    /// IPv4 address of the sender, or 0.0.0.0 if the sender has none yet.
    pub sender: Ipv4Addr,
    /// IPv4 address that is requested or announced.
    pub target: Ipv4Addr,
}

impl ArpMessage {
    /// Builds a probe: a request of a sender without an address (RFC 5227 section 1.1).
    pub fn probe(mac: MacAddr, target: Ipv4Addr) -> Self {
        Self { mac, sender: Ipv4Addr::UNSPECIFIED, target }
    }

    /// Builds an announcement that the sender uses `address` (RFC 5227 section 1.1).
    pub fn announcement(mac: MacAddr, address: Ipv4Addr) -> Self {
        Self { mac, sender: address, target: address }
    }

    /// Encodes a request as a broadcast frame.
    pub fn encode(&self) -> [u8; FRAME] {
        let mut frame = [0; FRAME];
        frame[..6].fill(0xff);
        frame[6..12].copy_from_slice(&self.mac.0);
        frame[12..20].copy_from_slice(&KIND);
        frame[20..22].copy_from_slice(&REQUEST);
        frame[22..28].copy_from_slice(&self.mac.0);
        frame[28..32].copy_from_slice(&self.sender.octets());
        frame[38..42].copy_from_slice(&self.target.octets());
        frame
    }

    /// Decodes an ARP request or reply. Returns `None` for any other frame.
    pub fn decode(frame: &[u8]) -> Option<Self> {
        let frame = frame.first_chunk::<FRAME>()?;
        let address =
            |at: usize| Ipv4Addr::new(frame[at], frame[at + 1], frame[at + 2], frame[at + 3]);
        let known = frame[12..20] == KIND && matches!(frame[20..22], [0, 1 | 2]);
        let mac = frame[22..28].try_into().ok()?;
        known.then(|| Self { mac: MacAddr(mac), sender: address(28), target: address(38) })
    }

    /// True if the message shows that another machine uses or probes `address` (RFC 3927 §2.2.1).
    pub fn contests(&self, address: Ipv4Addr, ours: MacAddr) -> bool {
        let probes = self.sender.is_unspecified() && self.target == address;
        self.mac != ours && (self.sender == address || probes)
    }

    /// True if the message shows that another machine uses `address` (RFC 3927 §2.5).
    pub fn takes(&self, address: Ipv4Addr, ours: MacAddr) -> bool {
        self.mac != ours && self.sender == address
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
    const THEIRS: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);
    const ADDRESS: Ipv4Addr = Ipv4Addr::new(169, 254, 7, 9);

    #[test]
    fn a_frame_is_read_as_it_was_written() {
        for message in [ArpMessage::probe(OURS, ADDRESS), ArpMessage::announcement(OURS, ADDRESS)] {
            let frame = message.encode();
            assert_eq!(ArpMessage::decode(&frame), Some(message));
            for length in 0..FRAME {
                assert_eq!(ArpMessage::decode(&frame[..length]), None);
            }
            let other = [&frame[..13], &[0x00], &frame[14..]].concat();
            assert_eq!(ArpMessage::decode(&other), None, "IPv4 is no ARP");
        }
    }

    #[test]
    fn an_address_is_contested_by_others_only() {
        for (message, contests, takes) in [
            (ArpMessage::probe(OURS, ADDRESS), false, false),
            (ArpMessage::announcement(OURS, ADDRESS), false, false),
            (ArpMessage::probe(THEIRS, ADDRESS), true, false),
            (ArpMessage::announcement(THEIRS, ADDRESS), true, true),
            (ArpMessage::announcement(THEIRS, Ipv4Addr::LOCALHOST), false, false),
        ] {
            assert_eq!(message.contests(ADDRESS, OURS), contests, "{message:?}");
            assert_eq!(message.takes(ADDRESS, OURS), takes, "{message:?}");
        }
    }
}
