//! Rules that must never be broken, checked with every message: the address promised to each
//! machine, and the address that each machine uses.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::net::Ipv4Addr;

use dhcp::{Lease, LeaseState, ServeMode};
use stdx::MacAddr;

use crate::clock::{Moment, SECOND};
use crate::message::{ACK, NAK, OFFER, Reply};

/// A broken rule of the address ledger.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// The box gave an address that it had promised to another machine.
    #[error("{address} was given to {second} while it is {first}'s for {left} s more")]
    Promised {
        /// The address given twice.
        address: Ipv4Addr,
        /// Machine that still has the lease.
        first: MacAddr,
        /// Machine that got the address too.
        second: MacAddr,
        /// Rest of the first machine's lease, in seconds.
        left: u64,
    },
    /// Two machines use one address.
    #[error("{first} and {second} both use {address}")]
    Shared {
        /// The address used twice.
        address: Ipv4Addr,
        /// Machine that used it first.
        first: MacAddr,
        /// Machine that uses it too.
        second: MacAddr,
    },
    /// The box sent an ACK before its lease was durable, or for longer than the durable lease.
    #[error("{mac} was given {address} for {lease_secs} s; durable is {durable}")]
    NotDurable {
        /// The address of the ACK.
        address: Ipv4Addr,
        /// Machine that received the ACK.
        mac: MacAddr,
        /// Lease time of the ACK, in seconds.
        lease_secs: u32,
        /// Lease in the store, which is shorter or missing.
        durable: Durable,
    },
    /// A NAK to a client that never got an OFFER or ACK and has no record.
    #[error("{0} was refused, which the box never knew")]
    Refused(MacAddr),
    /// An answer in a serving state that forbids it.
    #[error("an answer of type {kind} to {mac} while the gate is {gate:?}")]
    Still {
        /// DHCP message type (option 53).
        kind: u8,
        /// Client of the answer.
        mac: MacAddr,
        /// Serving state when the answer left.
        gate: ServeMode,
    },
    /// An address from a box in proxy mode, which must not assign any.
    #[error("{address} was given to {mac} beside another server")]
    Rogue {
        /// The address that was assigned.
        address: Ipv4Addr,
        /// Client of the answer.
        mac: MacAddr,
    },
    /// A table is larger than it may be.
    #[error("{0}")]
    Size(String),
    /// Machines that are not up, although the last fault is long over.
    #[error("{0} machines are not up, or lost their lease, long after the last fault: {1}")]
    Down(usize, String),
}

/// A durable lease, and the current time of the lease clock in seconds, for printing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Durable(pub Option<Lease>, pub u64);

impl fmt::Display for Durable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(lease, now) = self;
        let Some(Lease { mac, state, expires, .. }) = lease else { return f.write_str("nothing") };
        write!(f, "{state:?} of {mac} for {} s", expires.saturating_sub(*now))
    }
}

/// An address that a machine holds until its lease ends.
#[derive(Debug, Clone, Copy)]
struct Holding {
    mac: MacAddr,
    until: Moment,
}

/// Promised and used addresses of the run.
#[derive(Debug, Default)]
pub struct Ledger {
    /// Leases by the ACKs that the box sent.
    promised: HashMap<Ipv4Addr, Holding>,
    /// Leases by the ACKs that machines received.
    used: HashMap<Ipv4Addr, Holding>,
    /// Clients that got an OFFER or ACK.
    served: HashSet<MacAddr>,
}

/// State of the box when it sends an answer.
#[derive(Debug, Clone, Copy)]
pub struct Sight {
    /// True if the address is of a pool: the lease of an ACK must then be durable.
    pub pooled: bool,
    /// True if the machine has a record.
    pub known: bool,
    /// True in proxy mode: the box names boot files, but assigns no addresses.
    pub proxy: bool,
    /// Durable lease of the address, with the current time of the lease clock.
    pub durable: Durable,
}

impl Ledger {
    /// Checks an answer before its commit: the serving state must permit it.
    pub fn decided(&self, reply: &Reply, gate: ServeMode, known: bool) -> Result<(), Violation> {
        let Reply { kind, mac, .. } = *reply;
        let is_fine = match gate {
            ServeMode::Open => true,
            ServeMode::ProxyOnly => known && reply.address.is_unspecified() && kind != NAK,
            ServeMode::Closed => false,
        };
        if is_fine { Ok(()) } else { Err(Violation::Still { kind, mac, gate }) }
    }

    /// Checks an answer that the box sends now, and records the promised address.
    pub fn sent(&mut self, reply: &Reply, sight: Sight, now: Moment) -> Result<(), Violation> {
        let Reply { address, mac, lease_secs, .. } = *reply;
        match reply.kind {
            NAK if !sight.known && !self.served.contains(&mac) => {
                return Err(Violation::Refused(mac));
            }
            OFFER | ACK => {
                self.served.insert(mac);
            }
            _ => {}
        }
        if address.is_unspecified() {
            return Ok(());
        }
        if sight.proxy {
            return Err(Violation::Rogue { address, mac });
        }
        if reply.kind != ACK {
            return Ok(());
        }
        let Durable(lease, lease_now) = sight.durable;
        // A late REQUEST and the RELEASE or DECLINE after it can come in one batch. The durable
        // lease then follows the machine's last message, and the machine will not take the ACK.
        let is_given_back =
            lease.is_some_and(|lease| lease.mac == mac && lease.state != LeaseState::Bound);
        if sight.pooled && is_given_back {
            return Ok(());
        }
        let is_durable = lease.is_some_and(|lease| {
            lease.mac == mac
                && lease.state == LeaseState::Bound
                && lease.expires >= lease_now + u64::from(lease_secs)
        });
        if sight.pooled && !is_durable {
            let durable = sight.durable;
            return Err(Violation::NotDurable { address, mac, lease_secs, durable });
        }
        let until = now + Moment::from(lease_secs) * SECOND;
        match self.promised.insert(address, Holding { mac, until }) {
            Some(first) if first.mac != mac && first.until > now => Err(Violation::Promised {
                address,
                first: first.mac,
                second: mac,
                left: (first.until - now).div_ceil(SECOND),
            }),
            _ => Ok(()),
        }
    }

    /// Records that a machine received an ACK and uses its address. Fails if another machine uses
    /// the address.
    pub fn uses(
        &mut self,
        address: Ipv4Addr,
        mac: MacAddr,
        until: Moment,
        now: Moment,
    ) -> Result<(), Violation> {
        match self.used.insert(address, Holding { mac, until }) {
            Some(first) if first.mac != mac && first.until > now => {
                Err(Violation::Shared { address, first: first.mac, second: mac })
            }
            _ => Ok(()),
        }
    }

    /// Records that a machine no longer uses its address.
    pub fn leaves(&mut self, address: Ipv4Addr, mac: MacAddr) {
        remove(&mut self.used, address, mac);
    }

    /// Records that a machine gives its address back: the promise ends, even if the box does not
    /// receive the message.
    pub fn gives_back(&mut self, address: Ipv4Addr, mac: MacAddr) {
        remove(&mut self.promised, address, mac);
    }

    /// The machine that uses an address.
    pub fn user(&self, address: Ipv4Addr) -> Option<MacAddr> {
        self.used.get(&address).map(|holding| holding.mac)
    }

    /// Number of machines with an address.
    pub fn in_use(&self) -> usize {
        self.used.len()
    }
}

fn remove(book: &mut HashMap<Ipv4Addr, Holding>, address: Ipv4Addr, mac: MacAddr) {
    if book.get(&address).is_some_and(|holding| holding.mac == mac) {
        book.remove(&address);
    }
}

#[cfg(test)]
mod tests;
