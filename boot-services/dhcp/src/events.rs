//! Events of the DHCP service for other parts of the box; a boot history begins with them.

use std::fmt;
use std::net::Ipv4Addr;

use stdx::MacAddr;

use crate::messages::client::Stage;

/// Receiver of events. The service calls it from its only task, so it must not block.
pub trait Observer: Send + Sync + 'static {
    /// Receives an event; events arrive in the order of the packets.
    fn observe(&self, event: DhcpEvent);
}

/// DHCP exchange with a machine. Texts from packets are limited in length. An answer is reported
/// after it was sent; a lease is reported once it is durable.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum DhcpEvent {
    /// A known machine sent a DISCOVER.
    Discover {
        /// MAC of the client.
        mac: MacAddr,
        /// Kind of the client program.
        stage: Stage,
    },
    /// The machine got an OFFER.
    Offered {
        /// MAC of the client.
        mac: MacAddr,
        /// IPv4 address that was offered.
        address: Ipv4Addr,
    },
    /// A known machine sent a REQUEST, to this server or to any server.
    Requested {
        /// MAC of the client.
        mac: MacAddr,
        /// IPv4 address that the machine requested.
        address: Ipv4Addr,
        /// Kind of the client program.
        stage: Stage,
    },
    /// The machine got an ACK with its address or, after an INFORM, with its settings.
    Acked {
        /// MAC of the client.
        mac: MacAddr,
        /// Address that the machine uses now.
        address: Ipv4Addr,
        /// Boot file, as a name or a URL; `None` if the ACK has none.
        file: Option<String>,
    },
    /// The machine requested an address that is not its own, and got a NAK.
    Refused {
        /// MAC of the client.
        mac: MacAddr,
        /// Text of the NAK: the requested address, and the address of the record or lease.
        reason: String,
    },
    /// An unknown machine sent a request. Each machine is reported once a minute at most.
    UnknownMac {
        /// MAC of the client.
        mac: MacAddr,
        /// Vendor class (option 60), printable characters only, e.g.
        /// `PXEClient:Arch:00007:UNDI:003000`.
        vendor_class: Option<String>,
        /// Client architecture: first entry of option 93.
        arch: Option<u16>,
        /// Reason for no answer; `None` if unknown machines are served: the next event has the
        /// answer.
        drop_reason: Option<DropReason>,
    },
    /// Another station uses an address that a machine should get. A pool address is replaced by
    /// another one; a reserved address is offered anyway.
    Conflict {
        /// MAC of the machine that should get the address.
        mac: MacAddr,
        /// Address that is in use.
        address: Ipv4Addr,
        /// MAC of the station that uses the address.
        holder: MacAddr,
    },
    /// A machine is offered the address of its record, which is outside the network of its request.
    OutsideSubnet {
        /// MAC of the client.
        mac: MacAddr,
        /// Address in the machine's record.
        address: Ipv4Addr,
        /// Address that identifies the client's network: the relay's, or the box's own.
        link: Ipv4Addr,
    },
    /// A known machine released its address.
    Released {
        /// MAC of the client.
        mac: MacAddr,
        /// Address that was returned.
        address: Ipv4Addr,
    },
    /// A known machine declined its address (option 50 of the DECLINE): another station uses it.
    Declined {
        /// MAC of the client.
        mac: MacAddr,
        /// Address that another station uses.
        address: Ipv4Addr,
    },
    /// A known machine got no answer.
    Ignored {
        /// MAC of the client.
        mac: MacAddr,
        /// Reason for no answer.
        reason: DropReason,
    },
}

/// Reason why a machine got no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DropReason {
    /// No record has the MAC address, and unknown machines are not served.
    Unknown,
    /// The hardware record has `disableDhcp`.
    Disabled,
    /// The machine sent more requests than a booting machine does; reported once until it slows
    /// down.
    TooFast,
    /// The machine accepted the offer of this other server.
    OtherServer(Ipv4Addr),
    /// The REQUEST has no address (RFC 2131 table 4 does not allow that).
    NoAddress,
    /// The serving state does not permit an answer: see [`crate::ServeMode`].
    Held,
    /// The machine's record has no address, and there is no pool.
    NoReservation,
    /// No configured subnet contains this address of the client's network.
    NoSubnet(Ipv4Addr),
    /// Every address of the subnet's pool is in use.
    PoolExhausted,
    /// The address is being checked. The offer follows without another request.
    Checking(Ipv4Addr),
    /// The machine's reserved address is still leased to another machine.
    LeasedTo(MacAddr),
    /// The machine requested an address that this server did not lease to it. No NAK is sent.
    NotOurs(Ipv4Addr),
    /// The network has only boot files to serve, and the client requested none.
    NotNetbooting,
    /// The network has only boot files to serve, and the machine's record does not allow netboot.
    NetbootNotAllowed,
}

impl fmt::Display for DropReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("no Hardware has this MAC address; enroll it?"),
            Self::Disabled => f.write_str("DHCP is disabled for this interface"),
            Self::TooFast => f.write_str("it sends too many requests"),
            Self::OtherServer(server) => write!(f, "it chose the DHCP server {server}"),
            Self::NoAddress => f.write_str("its request has no address"),
            Self::Held => f.write_str("DHCP is held until this network is known to be safe"),
            Self::NoReservation => f.write_str("its Hardware has no address, and there is no pool"),
            Self::NoSubnet(link) => write!(f, "no subnet is set up for the network of {link}"),
            Self::PoolExhausted => f.write_str("every address of the pool is in use"),
            Self::Checking(address) => write!(f, "{address} is being checked before it is offered"),
            Self::LeasedTo(mac) => write!(f, "its reserved address is still leased to {mac}"),
            Self::NotOurs(address) => write!(f, "{address} was not leased to it by this server"),
            Self::NotNetbooting => {
                f.write_str("it did not request a boot file, and only boot files are served")
            }
            Self::NetbootNotAllowed => f.write_str("its Hardware does not allow netboot"),
        }
    }
}
