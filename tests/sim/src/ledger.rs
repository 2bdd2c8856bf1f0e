//! What must never happen, looked at with every message: who was promised which address, and who
//! believes to have it.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::net::Ipv4Addr;

use dhcp::{Gate, Lease, LeaseState};
use stdx::MacAddr;

use crate::clock::{Moment, SECOND};
use crate::message::{ACK, NAK, OFFER, Reply};

/// What was broken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// The box gave an address that it had promised to another machine.
    #[error("{address} was given to {second} while it is {first}'s for {left} s more")]
    Promised {
        /// Which address.
        address: Ipv4Addr,
        /// Whose it is.
        first: MacAddr,
        /// Who was given it.
        second: MacAddr,
        /// For how long it is the first one's.
        left: u64,
    },
    /// Two machines believe to have one address.
    #[error("{first} and {second} both use {address}")]
    Shared {
        /// Which address.
        address: Ipv4Addr,
        /// Who had it.
        first: MacAddr,
        /// Who has it too.
        second: MacAddr,
    },
    /// An ACK left before its lease was durable, or for longer than what is durable.
    #[error("{mac} was given {address} for {lease_secs} s; durable is {durable}")]
    NotDurable {
        /// Which address.
        address: Ipv4Addr,
        /// Who was given it.
        mac: MacAddr,
        /// For how long.
        lease_secs: u32,
        /// What the store has.
        durable: Durable,
    },
    /// A NAK to a client that never was the box's.
    #[error("{0} was refused, which the box never knew")]
    Refused(MacAddr),
    /// An answer of a service that should be still.
    #[error("an answer of type {kind} to {mac} while the gate is {gate:?}")]
    Still {
        /// Option 53.
        kind: u8,
        /// To whom.
        mac: MacAddr,
        /// What the gate is.
        gate: Gate,
    },
    /// An address from a box that should give none.
    #[error("{address} was given to {mac} beside another server")]
    Rogue {
        /// Which address.
        address: Ipv4Addr,
        /// To whom.
        mac: MacAddr,
    },
    /// A table is larger than it may be.
    #[error("{0}")]
    Size(String),
    /// A machine that is not up although nothing went wrong for long enough.
    #[error("{0} machines are not up, or lost their lease, long after the last fault: {1}")]
    Down(usize, String),
}

/// A durable lease, printed with what it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Durable(pub Option<Lease>, pub u64);

impl fmt::Display for Durable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(lease, now) = self;
        let Some(Lease { mac, state, expires, .. }) = lease else { return f.write_str("nothing") };
        write!(f, "{state:?} of {mac} for {} s", expires.saturating_sub(*now))
    }
}

/// An address that is somebody's.
#[derive(Debug, Clone, Copy)]
struct Holding {
    mac: MacAddr,
    until: Moment,
}

/// The books.
#[derive(Debug, Default)]
pub struct Ledger {
    /// By the ACKs that left the box.
    promised: HashMap<Ipv4Addr, Holding>,
    /// By the ACKs that arrived.
    used: HashMap<Ipv4Addr, Holding>,
    /// Whoever got an OFFER or ACK.
    served: HashSet<MacAddr>,
}

/// What the box is like when an answer leaves.
#[derive(Debug, Clone, Copy)]
pub struct Sight {
    /// The address is of a pool, so that its lease must be durable.
    pub pooled: bool,
    /// The machine has a record.
    pub known: bool,
    /// The box only names boot files.
    pub proxy: bool,
    /// What is durable of the address, and the lease time it is counted in.
    pub durable: Durable,
}

impl Ledger {
    /// The box decided to say this.
    pub fn decided(&self, reply: &Reply, gate: Gate, known: bool) -> Result<(), Violation> {
        let Reply { kind, mac, .. } = *reply;
        let is_fine = match gate {
            Gate::Open => true,
            Gate::ProxyOnly => known && reply.address.is_unspecified() && kind != NAK,
            Gate::Closed => false,
        };
        if is_fine { Ok(()) } else { Err(Violation::Still { kind, mac, gate }) }
    }

    /// The box says this, now.
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
        // A late REQUEST and the RELEASE or DECLINE after it can come in one batch: what is durable
        // then is the machine's last word, and it will not take the ACK.
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

    /// A machine was told that an address is its own.
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

    /// A machine uses its address no more.
    pub fn leaves(&mut self, address: Ipv4Addr, mac: MacAddr) {
        remove(&mut self.used, address, mac);
    }

    /// A machine said that it gives its address back: the promise is off, whether or not the box
    /// hears of it.
    pub fn gives_back(&mut self, address: Ipv4Addr, mac: MacAddr) {
        remove(&mut self.promised, address, mac);
    }

    /// Who uses an address.
    pub fn user(&self, address: Ipv4Addr) -> Option<MacAddr> {
        self.used.get(&address).map(|holding| holding.mac)
    }

    /// How many machines have an address.
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
