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

/// One thing that happened on the wire. Everything a packet said is bounded in length here.
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
    /// A machine nobody registered asks. It got no answer. Each is reported once a minute at most.
    UnknownMac {
        /// Who.
        mac: MacAddr,
        /// Option 60, printable characters only, e.g. `PXEClient:Arch:00007:UNDI:003000`.
        vendor_class: Option<String>,
        /// Option 93.
        arch: Option<u16>,
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

/// Why a known machine got no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Silence {
    /// Its hardware record says `disableDhcp`.
    Disabled,
    /// It asked more often than a booting machine does; reported when the limit is first met.
    TooFast,
    /// It chose another server's offer.
    OtherServer(Ipv4Addr),
    /// A REQUEST that names no address (RFC 2131 table 4 knows none).
    NoAddress,
}

impl fmt::Display for Silence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disabled => f.write_str("DHCP is disabled for this interface"),
            Self::TooFast => f.write_str("it asks too often"),
            Self::OtherServer(server) => write!(f, "it chose the DHCP server {server}"),
            Self::NoAddress => f.write_str("its request names no address"),
        }
    }
}
