//! One probe: DISCOVERs from an invented MAC address, and the servers that answer.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::{Duration, Instant};

use dhcproto::Encodable as _;
use dhcproto::v4::{DhcpOption, Flags, Message, MessageType, OptionCode};
use smoltcp::wire::{EthernetAddress, EthernetFrame, EthernetProtocol, EthernetRepr};
use stdx::MacAddr;

use super::evidence::Sighting;
use crate::sockets::frame;

/// Times at which DISCOVERs are sent, since the start of the probe.
const SEND_AT: [Duration; 4] =
    [Duration::ZERO, Duration::from_secs(2), Duration::from_secs(4), Duration::from_secs(8)];
/// Minimum times to listen for answers after the first and the last DISCOVER.
const LISTEN: Duration = Duration::from_secs(10);
const LISTEN_LAST: Duration = Duration::from_secs(2);
/// Limit of servers remembered per probe.
const SERVERS_MAX: usize = 8;

/// Minimum bytes of a DISCOVER, which is padded to RFC 951's size of a BOOTP message.
const MESSAGE: usize = 300;
const ETHERNET: usize = 14;

/// Addresses from which a probe is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProbeSender {
    /// Client MAC in the DISCOVER, invented: a server that knows the box would treat it
    /// differently.
    pub client: MacAddr,
    /// Source MAC address of the frame: the interface's own. A switch that allows one station per
    /// port then has no reason to shut the port.
    pub station: MacAddr,
}

impl ProbeSender {
    /// Creates a sender with a locally administered unicast client MAC from six random bytes.
    pub fn new(station: MacAddr, random: [u8; 6]) -> Self {
        let [first, rest @ ..] = random;
        let [b, c, d, e, f] = rest;
        Self { client: MacAddr([(first & 0xfc) | 0x02, b, c, d, e, f]), station }
    }

    /// Returns the frame of a DISCOVER, `secs` seconds after the first one. The DISCOVER requests a
    /// broadcast answer, which reaches every port of the network.
    pub fn discover(&self, xid: u32, secs: u16) -> Vec<u8> {
        let message = self.message(xid, secs);
        let source = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 68);
        let target = SocketAddrV4::new(Ipv4Addr::BROADCAST, 67);
        let datagram = frame::datagram(source, target, &message).expect("a DISCOVER is short");
        let mut bytes = vec![0; ETHERNET];
        EthernetRepr {
            src_addr: EthernetAddress(self.station.0),
            dst_addr: EthernetAddress::BROADCAST,
            ethertype: EthernetProtocol::Ipv4,
        }
        .emit(&mut EthernetFrame::new_unchecked(&mut bytes));
        bytes.extend(datagram);
        bytes
    }

    fn message(&self, xid: u32, secs: u16) -> Vec<u8> {
        let none = Ipv4Addr::UNSPECIFIED;
        let mut message = Message::new_with_id(xid, none, none, none, none, &self.client.0);
        message.set_secs(secs).set_flags(Flags::default().set_broadcast());
        let options = message.opts_mut();
        options.insert(DhcpOption::MessageType(MessageType::Discover));
        options.insert(DhcpOption::ParameterRequestList(vec![
            OptionCode::SubnetMask,
            OptionCode::Router,
            OptionCode::DomainNameServer,
        ]));
        let mut bytes = message.to_vec().expect("these options have a wire form");
        bytes.resize(bytes.len().max(MESSAGE), 0);
        bytes
    }
}

/// State of a probe in progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Probe {
    pub started: Instant,
    pub xid: u32,
    sent: usize,
    /// Time at which the last DISCOVER was sent; a busy machine may send late.
    last_sent: Instant,
    /// True if a DISCOVER was not sent or the link changed: missing answers then prove nothing.
    pub void: bool,
    /// Servers that answered, in order of arrival, at most [`SERVERS_MAX`].
    answers: Vec<Sighting>,
}

impl Probe {
    pub fn new(started: Instant, xid: u32) -> Self {
        Self { started, xid, sent: 0, last_sent: started, void: false, answers: Vec::new() }
    }

    /// Returns the field `secs` of a DISCOVER that is due, once for each; `None` if none is due.
    pub fn due(&mut self, now: Instant) -> Option<u16> {
        let at = *SEND_AT.get(self.sent)?;
        let due = now >= self.started + at;
        due.then(|| {
            self.sent += 1;
            self.last_sent = now;
            u16::try_from(at.as_secs()).unwrap_or(u16::MAX)
        })
    }

    /// Returns the time of the next DISCOVER, or of the end of the probe.
    pub fn deadline(&self) -> Instant {
        SEND_AT.get(self.sent).map_or_else(|| self.end(), |at| self.started + *at)
    }

    pub fn is_over(&self, now: Instant) -> bool {
        self.sent == SEND_AT.len() && now >= self.end()
    }

    fn end(&self) -> Instant {
        (self.started + LISTEN).max(self.last_sent + LISTEN_LAST)
    }

    pub fn note(&mut self, sighting: Sighting) {
        let known = self.answers.iter().any(|answer| answer.server == sighting.server);
        if !known && self.answers.len() < SERVERS_MAX {
            self.answers.push(sighting);
        }
    }

    pub fn answers(&self) -> &[Sighting] {
        &self.answers
    }
}
