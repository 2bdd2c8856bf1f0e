//! The service without its sockets: a datagram in, at most one message and its place out.

use std::net::Ipv4Addr;
use std::time::Instant;

use stdx::MacAddr;

use crate::bootfile::Boot;
use crate::config::Config;
use crate::decide::{Decision, asked_address, decide};
use crate::guard::{Guard, Pace};
use crate::reply::{Answer, grant, nak};
use crate::request::{Kind, Malformed, Request};
use crate::reservation::{Directory, Reservation};
use crate::seen::{Observer, Seen, Silence};

/// A DHCP message to send from UDP port 67.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing {
    /// The UDP payload.
    pub message: Vec<u8>,
    /// Where to.
    pub to: Destination,
}

/// Where an answer goes (RFC 2131 §4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Destination {
    /// The relay agent, port 67.
    Relay(Ipv4Addr),
    /// A client that already uses its address, port 68, by the ordinary way.
    Address(Ipv4Addr),
    /// A client that has been given `address` but cannot yet answer ARP for it: a frame to `mac`,
    /// port 68. iPXE's 2019 ROM asks for this one.
    Link {
        /// The frame's destination.
        mac: MacAddr,
        /// The datagram's destination.
        address: Ipv4Addr,
    },
    /// Everyone on the link, port 68.
    Broadcast,
}

/// The service's state: its settings and its limits. Leases are not state, they are reservations.
#[derive(Debug)]
pub struct Engine {
    config: Config,
    guard: Guard,
}

impl Engine {
    /// A service that has heard nobody yet.
    pub fn new(config: Config, now: Instant) -> Self {
        Self { config, guard: Guard::new(now) }
    }

    /// Takes one datagram that arrived at port 67.
    ///
    /// # Errors
    /// Says why the datagram is not a client's message; worth a debug line, no more.
    pub fn handle(
        &mut self,
        datagram: &[u8],
        directory: &dyn Directory,
        observer: &dyn Observer,
        now: Instant,
    ) -> Result<Option<Outgoing>, Malformed> {
        let request = Request::read(datagram)?;
        let mac = request.mac;
        let Some(machine) = directory.by_mac(mac) else {
            if self.guard.report_stranger(mac, now) {
                let vendor_class = request.client.vendor_class;
                observer.seen(Seen::UnknownMac { mac, vendor_class, arch: request.client.arch });
            }
            return Ok(None);
        };
        match self.guard.pace(mac, now) {
            Pace::Fine => Ok(self.answer(&machine, &request, observer)),
            Pace::JustTooFast => {
                observer.seen(Seen::Ignored { mac, reason: Silence::TooFast });
                Ok(None)
            }
            Pace::StillTooFast => Ok(None),
        }
    }

    fn answer(
        &self,
        machine: &Reservation,
        request: &Request,
        observer: &dyn Observer,
    ) -> Option<Outgoing> {
        let (mac, stage) = (request.mac, request.client.stage);
        match (request.kind, asked_address(request)) {
            (Kind::Discover, _) => observer.seen(Seen::Discover { mac, stage }),
            (Kind::Request, Some(address)) => {
                observer.seen(Seen::Requested { mac, address, stage });
            }
            _ => {}
        }
        let grant =
            |answer, lease, boot: &Boot| grant(&self.config, machine, request, answer, lease, boot);
        let acked = |address, boot: &Boot| {
            let file = boot.file().map(str::to_owned);
            observer.seen(Seen::Acked { mac, address, file });
        };
        let address = machine.address;
        let (message, to) = match decide(&self.config, machine, request) {
            Decision::Offer(boot) => {
                observer.seen(Seen::Offered { mac, address });
                (grant(Answer::Offer, true, &boot), destination(request, address, false))
            }
            Decision::Ack(boot) => {
                acked(address, &boot);
                let in_use = request.ciaddr == address;
                (grant(Answer::Ack, true, &boot), destination(request, address, in_use))
            }
            Decision::Inform(boot) => {
                acked(request.ciaddr, &boot);
                (grant(Answer::Ack, false, &boot), inform_destination(request)?)
            }
            Decision::Nak(reason) => {
                let message = nak(&self.config, request, &reason);
                observer.seen(Seen::Refused { mac, reason });
                (message, relay(request).unwrap_or(Destination::Broadcast))
            }
            Decision::Released(address) => {
                observer.seen(Seen::Released { mac, address });
                return None;
            }
            Decision::Declined(address) => {
                observer.seen(Seen::Declined { mac, address });
                return None;
            }
            Decision::Silence(reason) => {
                observer.seen(Seen::Ignored { mac, reason });
                return None;
            }
        };
        Some(Outgoing { message, to })
    }
}

fn relay(request: &Request) -> Option<Destination> {
    (!request.giaddr.is_unspecified()).then_some(Destination::Relay(request.giaddr))
}

fn destination(request: &Request, address: Ipv4Addr, in_use: bool) -> Destination {
    if let Some(relay) = relay(request) {
        relay
    } else if in_use {
        Destination::Address(address)
    } else if request.wants_broadcast() {
        Destination::Broadcast
    } else {
        Destination::Link { mac: request.mac, address }
    }
}

/// The answer to an INFORM goes to the address the client says it has (RFC 2131 §4.3.5); one that
/// names none can only be reached through its relay.
fn inform_destination(request: &Request) -> Option<Destination> {
    if request.ciaddr.is_unspecified() {
        relay(request)
    } else {
        Some(Destination::Address(request.ciaddr))
    }
}

#[cfg(test)]
mod tests;
