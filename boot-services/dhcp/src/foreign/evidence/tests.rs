use super::{OwnServers, Sighting, sighting};
use crate::foreign::probe::ProbeSender;
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    EthernetAddress, EthernetFrame, EthernetProtocol, EthernetRepr, IpProtocol, Ipv4Packet,
    Ipv4Repr, UdpPacket, UdpRepr,
};
use std::net::Ipv4Addr;
use stdx::MacAddr;

const OURS: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
const OUR_MAC: MacAddr = MacAddr([0x52, 0x54, 0, 0x77, 0, 0xff]);
const OTHER: Ipv4Addr = Ipv4Addr::new(192, 168, 1, 1);
const OTHER_MAC: MacAddr = MacAddr([0, 0x1b, 0x21, 1, 2, 3]);
const OFFERED: Ipv4Addr = Ipv4Addr::new(192, 168, 1, 100);

fn own() -> OwnServers {
    OwnServers { servers: vec![OURS], macs: vec![OUR_MAC] }
}

/// Frame of a server's broadcast OFFER, which each test changes.
pub(in crate::foreign) struct Packet {
    pub station: MacAddr,
    pub from: Ipv4Addr,
    pub to: Ipv4Addr,
    pub ports: (u16, u16),
    pub message: Vec<u8>,
}

impl Packet {
    pub fn offer() -> Self {
        let mut message = vec![0; 240];
        message[..3].copy_from_slice(&[2, 1, 6]);
        message[16..20].copy_from_slice(&OFFERED.octets());
        message[236..240].copy_from_slice(&[99, 130, 83, 99]);
        message.extend([53, 1, 2, 54, 4, 192, 168, 1, 1, 255]);
        let to = Ipv4Addr::BROADCAST;
        Self { station: OTHER_MAC, from: OTHER, to, ports: (67, 68), message }
    }

    pub fn request() -> Self {
        let mut packet = Self::offer();
        packet.from = Ipv4Addr::UNSPECIFIED;
        packet.ports = (68, 67);
        packet.message[0] = 1;
        packet.message[16..20].fill(0);
        packet.message.truncate(240);
        packet.message.extend([53, 1, 3, 54, 4, 192, 168, 1, 1, 50, 4, 192, 168, 1, 100, 255]);
        packet
    }

    pub fn frame(&self) -> Vec<u8> {
        let mut frame = vec![0; 42 + self.message.len()];
        EthernetRepr {
            src_addr: EthernetAddress(self.station.0),
            dst_addr: EthernetAddress::BROADCAST,
            ethertype: EthernetProtocol::Ipv4,
        }
        .emit(&mut EthernetFrame::new_unchecked(&mut frame));
        let sums = ChecksumCapabilities::default();
        Ipv4Repr {
            src_addr: self.from,
            dst_addr: self.to,
            next_header: IpProtocol::Udp,
            payload_len: 8 + self.message.len(),
            hop_limit: 64,
        }
        .emit(&mut Ipv4Packet::new_unchecked(&mut frame[14..]), &sums);
        UdpRepr { src_port: self.ports.0, dst_port: self.ports.1 }.emit(
            &mut UdpPacket::new_unchecked(&mut frame[34..]),
            &self.from.into(),
            &self.to.into(),
            self.message.len(),
            |payload| payload.copy_from_slice(&self.message),
            &sums,
        );
        frame
    }

    fn sighting(&self) -> Option<Sighting> {
        sighting(&self.frame(), &own())
    }
}

const SEEN: Sighting = Sighting { server: OTHER, mac: Some(OTHER_MAC), offered: Some(OFFERED) };

#[test]
fn any_answer_to_a_client_shows_a_server() {
    assert_eq!(Packet::offer().sighting(), Some(SEEN));
    // ACK, NAK, and plain BOOTP, which has no type.
    for options in [&[53, 1, 5, 54, 4, 192, 168, 1, 1][..], &[53, 1, 6], &[255], &[53, 9]] {
        let mut packet = Packet::offer();
        packet.message.truncate(240);
        packet.message.extend(options);
        assert_eq!(packet.sighting(), Some(SEEN), "{options:?}");
    }
    let mut packet = Packet::offer();
    packet.message[236..240].fill(0);
    assert_eq!(packet.sighting(), Some(SEEN), "not even a cookie");
    packet.message[16..20].fill(0);
    assert_eq!(packet.sighting().unwrap().offered, None, "a boot server has no address to offer");
}

#[test]
fn our_own_answers_show_nobody() {
    let mut packet = Packet::offer();
    packet.station = OUR_MAC;
    assert_eq!(packet.sighting(), None, "another interface of the box");

    let mut packet = Packet::offer();
    packet.message[245..249].copy_from_slice(&OURS.octets());
    assert_eq!(packet.sighting().unwrap().server, OURS, "another station with our identifier");
    packet.message[24..28].copy_from_slice(&[10, 77, 0, 254]);
    assert_eq!(packet.sighting(), None, "a relay repeats what we said");
}

#[test]
fn a_client_that_takes_an_offer_names_its_server() {
    let seen = Sighting { mac: None, ..SEEN };
    assert_eq!(Packet::request().sighting(), Some(seen));

    let mut ours = Packet::request();
    ours.message[245..249].copy_from_slice(&OURS.octets());
    assert_eq!(ours.sighting(), None, "it takes ours");
    let mut discover = Packet::request();
    discover.message[242] = 1;
    assert_eq!(discover.sighting(), None, "only a REQUEST takes an offer");
    let mut relayed = Packet::request();
    relayed.message[24..28].copy_from_slice(&[10, 1, 0, 254]);
    assert_eq!(relayed.sighting(), None, "its server is on another network");
    let mut unicast = Packet::request();
    unicast.to = OTHER;
    assert_eq!(unicast.sighting(), None, "only a broadcast is of this network");
}

#[test]
fn other_traffic_shows_nobody() {
    let mut to_relay = Packet::offer();
    to_relay.ports = (67, 67);
    assert_eq!(to_relay.sighting(), None, "an answer that passes through to another network");
    let probe = ProbeSender::new(OUR_MAC, [0xff; 6]).discover(1, 0);
    assert_eq!(sighting(&probe, &OwnServers::default()), None);
    let frame = Packet::offer().frame();
    for length in 0..42 + 240 {
        assert_eq!(sighting(&frame[..length], &own()), None, "{length} bytes");
    }
    let mut fragment = frame.clone();
    fragment[21] = 1;
    assert_eq!(sighting(&fragment, &own()), None);
}
