//! State table of the watch: a state and an event give the next state.

use std::fmt;
use std::net::Ipv4Addr;
use std::time::SystemTime;

use stdx::MacAddr;

/// Another DHCP server on the network, as first detected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Foreign {
    /// Server identifier (option 54) of the server, or the source address of its message.
    pub server: Ipv4Addr,
    /// MAC of the sender, which may be a relay; `None` if only a client named the server.
    pub mac: Option<MacAddr>,
    /// Name of the box's interface on this network.
    pub interface: String,
    /// First address that the server offered; `None` for a boot server without addresses.
    pub offered: Option<Ipv4Addr>,
    /// Time at which the evidence was received.
    pub when: SystemTime,
}

/// Formats as `192.0.2.1 (02:00:00:00:00:01) on eth1, offering 192.0.2.77`.
impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.server)?;
        if let Some(mac) = self.mac {
            write!(f, " ({mac})")?;
        }
        write!(f, " on {}", self.interface)?;
        self.offered.map_or(Ok(()), |address| write!(f, ", offering {address}"))
    }
}

/// State of the watch of one interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// No client gets an answer for now.
    Held(Hold),
    /// No other server was found: leases are given.
    Serving,
    /// A client named another server. No leases are given until a probe gets no answer.
    Checking(Foreign),
    /// Another server was found. No leases are given until a person resumes the service.
    Stopped(Foreign),
    /// Proxy mode: no leases are given, and another server is expected.
    Proxy(Neighbor),
}

/// Reason why no client gets an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// The watch has not begun, or has ended.
    Unwatched,
    /// A probe for other servers is in progress.
    Probing,
    /// The interface has no carrier.
    NoCarrier,
}

/// Server of addresses in a network in proxy mode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Neighbor {
    /// No server is known, and no probe is complete.
    Unknown,
    /// A probe found no server: machines on this network get no address.
    None,
    /// Another server is known.
    Server(Foreign),
}

/// Permission to answer clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permit {
    /// All services of the interface's mode.
    Everything,
    /// Only boot files, for machines that are being installed; no leases.
    Boots,
    /// No answer is permitted.
    Nothing,
}

/// Event that may change the state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A message of another server was received.
    Received(Foreign),
    /// A client named another server. Any station can send such a message, and a client that moved
    /// between networks does. So a probe must verify it.
    Named(Foreign),
    /// A complete probe got no answer while the link was up. In proxy mode: the known server did
    /// not answer.
    ProbeClean,
    /// The carrier was lost for longer than a reconnection takes.
    Unplugged,
    /// The carrier is back after [`Event::Unplugged`], perhaps on another network.
    Plugged,
    /// A person resumes the interface.
    Rearm,
}

/// State without a watch: no answer is permitted.
impl Default for State {
    fn default() -> Self {
        Self::Held(Hold::Unwatched)
    }
}

impl State {
    /// Returns the state after the event.
    #[must_use]
    pub fn next(self, event: Event) -> Self {
        match (self, event) {
            (state @ Self::Held(Hold::Unwatched), _) => state,

            (Self::Held(Hold::Probing) | Self::Serving | Self::Checking(_), Event::ProbeClean) => {
                Self::Serving
            }
            (Self::Held(Hold::NoCarrier), Event::Plugged) => Self::Held(Hold::Probing),
            (Self::Held(_) | Self::Serving | Self::Checking(_), Event::Received(foreign)) => {
                Self::Stopped(foreign)
            }
            (Self::Serving, Event::Named(foreign)) => Self::Checking(foreign),
            (Self::Held(_) | Self::Serving | Self::Checking(_), Event::Unplugged) => {
                Self::Held(Hold::NoCarrier)
            }
            (Self::Serving | Self::Checking(_), Event::Plugged) => Self::Held(Hold::Probing),
            // A network that is not served yet is probed before it is served.
            (
                state @ Self::Held(_),
                Event::Named(_) | Event::ProbeClean | Event::Plugged | Event::Rearm,
            ) => state,
            (state @ Self::Checking(_), Event::Named(_) | Event::Rearm) => state,
            (Self::Serving, Event::Rearm) => Self::Serving,

            // Only a person can undo a stop. The network is then probed first.
            (Self::Stopped(_), Event::Rearm) => Self::Held(Hold::Probing),
            (state @ Self::Stopped(_), _) => state,

            (Self::Proxy(_), Event::Unplugged | Event::Plugged) => Self::Proxy(Neighbor::Unknown),
            (Self::Proxy(_), Event::ProbeClean) => Self::Proxy(Neighbor::None),
            (state @ Self::Proxy(Neighbor::Server(_)), Event::Received(_) | Event::Named(_)) => {
                state
            }
            (Self::Proxy(_), Event::Received(foreign) | Event::Named(foreign)) => {
                Self::Proxy(Neighbor::Server(foreign))
            }
            (state @ Self::Proxy(_), Event::Rearm) => state,
        }
    }

    /// Returns what the DHCP server may answer in this state.
    pub fn permit(&self) -> Permit {
        match self {
            Self::Held(_) => Permit::Nothing,
            Self::Serving | Self::Proxy(_) => Permit::Everything,
            Self::Checking(_) | Self::Stopped(_) => Permit::Boots,
        }
    }
}

/// Formats the state in one line, for logs.
impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Held(Hold::Unwatched) => f.write_str("held: the network is not watched"),
            Self::Held(Hold::Probing) => f.write_str("held: looking for other DHCP servers"),
            Self::Held(Hold::NoCarrier) => f.write_str("held: the cable is out"),
            Self::Serving => f.write_str("serving: no other DHCP server answers"),
            Self::Checking(foreign) => {
                write!(f, "checking: a client named another DHCP server, {foreign}")
            }
            Self::Stopped(foreign) => write!(f, "stopped: another DHCP server, {foreign}"),
            Self::Proxy(Neighbor::Unknown) => f.write_str("proxy: looking for the DHCP server"),
            Self::Proxy(Neighbor::None) => f.write_str("proxy: no DHCP server answers"),
            Self::Proxy(Neighbor::Server(server)) => write!(f, "proxy: beside {server}"),
        }
    }
}

#[cfg(test)]
mod tests;
