//! Events of the service for the rest of the box: the beginning of a machine's boot history.

use std::fmt;
use std::net::Ipv4Addr;

use stdx::MacAddr;

use crate::messages::client::Stage;

/// Receiver of events. Called from the service's only task: it must not block.
pub trait Observer: Send + Sync + 'static {
    /// Receives an event, in the order of the wire.
    fn observe(&self, event: DhcpEvent);
}

/// An event on the wire. Texts from packets are bounded in length. Answers are reported after they
/// were sent, and so leases when they are durable.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum DhcpEvent {
    /// A known machine looks for a server.
    Discover {
        /// MAC of the client.
        mac: MacAddr,
        /// Kind of the client program.
        stage: Stage,
    },
    /// The machine was offered its address.
    Offered {
        /// MAC of the client.
        mac: MacAddr,
        /// Address that was offered.
        address: Ipv4Addr,
    },
    /// A known machine requests an address (of this server, or of any).
    Requested {
        /// MAC of the client.
        mac: MacAddr,
        /// The address it named.
        address: Ipv4Addr,
        /// Kind of the client program.
        stage: Stage,
    },
    /// The machine got its address, or, for an INFORM, its settings.
    Acked {
        /// MAC of the client.
        mac: MacAddr,
        /// The address it now uses.
        address: Ipv4Addr,
        /// Boot file, as a name or URL.
        file: Option<String>,
    },
    /// The machine requested an address that is not its own, and got a NAK.
    Refused {
        /// MAC of the client.
        mac: MacAddr,
        /// One sentence: the requested address and the record's.
        reason: String,
    },
    /// An unknown machine sent a request. Each is reported once a minute at most.
    UnknownMac {
        /// MAC of the client.
        mac: MacAddr,
        /// Option 60, printable characters only, e.g. `PXEClient:Arch:00007:UNDI:003000`.
        vendor_class: Option<String>,
        /// First entry of option 93.
        arch: Option<u16>,
        /// Reason for no answer; `None` if unknown machines are served, and the next event says
        /// how.
        drop_reason: Option<DropReason>,
    },
    /// An address to be offered, or a reserved one, is in use by another station. From a pool
    /// another is offered; a reservation is offered anyway.
    Conflict {
        /// MAC of the machine that should get it.
        mac: MacAddr,
        /// Address that is in use.
        address: Ipv4Addr,
        /// MAC of the station that answered.
        holder: MacAddr,
    },
    /// A machine is offered its record's address, which is outside the network of its request.
    OutsideSubnet {
        /// MAC of the client.
        mac: MacAddr,
        /// Address of its record.
        address: Ipv4Addr,
        /// An address of the network it is in: its relay's, or the box's own.
        link: Ipv4Addr,
    },
    /// A known machine gave its address back.
    Released {
        /// MAC of the client.
        mac: MacAddr,
        /// Address that was returned.
        address: Ipv4Addr,
    },
    /// A known machine found its address in use by another (option 50 of the DECLINE).
    Declined {
        /// MAC of the client.
        mac: MacAddr,
        /// Address that another station uses.
        address: Ipv4Addr,
    },
    /// A known machine got no answer, and why.
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
    /// No record has its MAC address, and unknown machines are not served.
    Unknown,
    /// Its hardware record says `disableDhcp`.
    Disabled,
    /// It sent more requests than a booting machine does; reported when the limit is first reached.
    TooFast,
    /// It chose another server's offer.
    OtherServer(Ipv4Addr),
    /// Its REQUEST names no address (RFC 2131 table 4 allows none).
    NoAddress,
    /// The service is held: see [`crate::ServeMode`].
    Held,
    /// Its record names no address, and there is no pool.
    NoReservation,
    /// No subnet of ours has this address, which is of the network it is in.
    NoSubnet(Ipv4Addr),
    /// Every address of its subnet's pool is given.
    PoolExhausted,
    /// The address is being checked; the offer follows without another request.
    Checking(Ipv4Addr),
    /// Its reserved address is still leased to another machine.
    LeasedTo(MacAddr),
    /// It requested an address that is not known to be its own. Clients of another server are not
    /// refused.
    NotOurs(Ipv4Addr),
    /// Only boot files are served here, and it requested none.
    NotNetbooting,
    /// Boot files are all there is, and its record does not allow them.
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
