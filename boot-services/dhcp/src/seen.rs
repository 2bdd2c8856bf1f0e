//! What the service tells the rest of the box: the beginning of a machine's boot story.

use std::fmt;
use std::net::Ipv4Addr;

use stdx::MacAddr;

use crate::client::Stage;

/// Hears what happens on the wire. Called from the service's only task: it must not block.
pub trait Observer: Send + Sync + 'static {
    /// One thing that happened.
    fn seen(&self, seen: Seen);
}

/// One thing that happened on the wire. Everything a packet said is bounded in length here. Of
/// answers is told when they have been sent, and so of a lease when it is durable.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Seen {
    /// A known machine looks for a server.
    Discover {
        /// Who.
        mac: MacAddr,
        /// What kind of program on it asks.
        stage: Stage,
    },
    /// It was offered its address.
    Offered {
        /// Who.
        mac: MacAddr,
        /// What it was offered.
        address: Ipv4Addr,
    },
    /// A known machine asks for an address (of this server, or of any).
    Requested {
        /// Who.
        mac: MacAddr,
        /// The address it named.
        address: Ipv4Addr,
        /// What kind of program on it asks.
        stage: Stage,
    },
    /// It was given its address, or, for an INFORM, its settings.
    Acked {
        /// Who.
        mac: MacAddr,
        /// The address it now uses.
        address: Ipv4Addr,
        /// What it was told to load, as a file name or URL.
        file: Option<String>,
    },
    /// It asked for an address that is not its own, and was refused (NAK).
    Refused {
        /// Who.
        mac: MacAddr,
        /// One sentence: what was asked and what the record says.
        reason: String,
    },
    /// A machine nobody registered asks. Each is reported once a minute at most.
    UnknownMac {
        /// Who.
        mac: MacAddr,
        /// Option 60, printable characters only, e.g. `PXEClient:Arch:00007:UNDI:003000`.
        vendor_class: Option<String>,
        /// Option 93.
        arch: Option<u16>,
        /// Why it got no answer; `None` when strangers are served, and what follows says how.
        silence: Option<Silence>,
    },
    /// An address that was to be offered, or is reserved, is in use by somebody else. From a pool
    /// another is offered, a reservation is offered all the same.
    Conflict {
        /// Who was to have it.
        mac: MacAddr,
        /// Which address.
        address: Ipv4Addr,
        /// Who answers for it.
        holder: MacAddr,
    },
    /// A machine is offered the address of its record, which is not of the network it asks from.
    OutsideSubnet {
        /// Who.
        mac: MacAddr,
        /// What its record says.
        address: Ipv4Addr,
        /// An address of the network it is in: its relay's, or the box's own.
        link: Ipv4Addr,
    },
    /// A known machine gave its address back.
    Released {
        /// Who.
        mac: MacAddr,
        /// Which address.
        address: Ipv4Addr,
    },
    /// A known machine found its address in use by another (option 50 of the DECLINE).
    Declined {
        /// Who.
        mac: MacAddr,
        /// Which address.
        address: Ipv4Addr,
    },
    /// A known machine got no answer, and why.
    Ignored {
        /// Who.
        mac: MacAddr,
        /// Why.
        reason: Silence,
    },
}

/// Why a machine got no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Silence {
    /// No record has its hardware address, and strangers are not served.
    Unknown,
    /// Its hardware record says `disableDhcp`.
    Disabled,
    /// It asked more often than a booting machine does; reported when the limit is first met.
    TooFast,
    /// It chose another server's offer.
    OtherServer(Ipv4Addr),
    /// A REQUEST that names no address (RFC 2131 table 4 knows none).
    NoAddress,
    /// The service is held: see [`crate::Gate`].
    Held,
    /// Its record names no address, and there is no pool.
    NoReservation,
    /// No subnet of ours has this address, which is of the network it is in.
    NoSubnet(Ipv4Addr),
    /// Every address of its subnet's pool is given.
    PoolExhausted,
    /// The address it would be offered is being checked; it will be offered without being asked
    /// for again.
    Checking(Ipv4Addr),
    /// Its reserved address is still leased to another machine.
    LeasedTo(MacAddr),
    /// It asks for an address that is not known to be its own, and nobody may tell it so: another
    /// server's clients are not ours to refuse.
    NotOurs(Ipv4Addr),
    /// Boot files are all there is, and it asked for none.
    NotNetbooting,
    /// Boot files are all there is, and its record does not allow them.
    NetbootNotAllowed,
}

impl fmt::Display for Silence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("no Hardware has this MAC address; enrol it?"),
            Self::Disabled => f.write_str("DHCP is disabled for this interface"),
            Self::TooFast => f.write_str("it asks too often"),
            Self::OtherServer(server) => write!(f, "it chose the DHCP server {server}"),
            Self::NoAddress => f.write_str("its request names no address"),
            Self::Held => f.write_str("DHCP is held until this network is known to be safe"),
            Self::NoReservation => f.write_str("its record names no address and there is no pool"),
            Self::NoSubnet(link) => write!(f, "no subnet is set up for the network of {link}"),
            Self::PoolExhausted => f.write_str("every address of the pool is given"),
            Self::Checking(address) => write!(f, "{address} is being checked before it is offered"),
            Self::LeasedTo(mac) => write!(f, "its reserved address is still leased to {mac}"),
            Self::NotOurs(address) => write!(f, "{address} was not given to it by this server"),
            Self::NotNetbooting => {
                f.write_str("it asked for no boot file, and only those are served")
            }
            Self::NetbootNotAllowed => f.write_str("its record does not allow netboot"),
        }
    }
}
