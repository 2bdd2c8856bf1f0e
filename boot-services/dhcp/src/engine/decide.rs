//! Decides about requests of machines with a reserved address: one valid request in, one answer
//! out.

use std::net::Ipv4Addr;

use crate::config::Config;
use crate::engine::bootfile::boot;
use crate::events::DropReason;
use crate::messages::boot::Boot;
use crate::messages::request::{Kind, Request};
use crate::reservation::{FixedAddress, Reservation};

/// Decision about a known machine's request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Answer a DISCOVER with an offer.
    Offer(Boot),
    /// Answer a REQUEST with an ACK.
    Ack(Boot),
    /// Answer INFORM: settings, no address, no lease.
    Inform(Boot),
    /// Refuse REQUEST, with the sentence that goes into option 56.
    Nak(String),
    /// Note that the address came back.
    Released(Ipv4Addr),
    /// Note that the address is used by another.
    Declined(Ipv4Addr),
    /// Send no answer, for this reason.
    Drop(DropReason),
}

/// Decides by RFC 2131 §4.3, where the lease is a reservation.
pub(crate) fn decide(
    config: &Config,
    machine: &Reservation,
    fixed: FixedAddress,
    request: &Request,
) -> Decision {
    if machine.disable_dhcp {
        return Decision::Drop(DropReason::Disabled);
    }
    let other = request.server_id.filter(|server| *server != config.server);
    let boot = || boot(config, machine, &request.client);
    match (request.kind, other) {
        // A DISCOVER names no server (RFC 2131 table 5); one that does is answered all the same.
        (Kind::Discover, _) => Decision::Offer(boot()),
        (_, Some(server)) => Decision::Drop(DropReason::OtherServer(server)),
        (Kind::Inform, None) => Decision::Inform(boot()),
        (Kind::Release, None) => Decision::Released(request.ciaddr),
        (Kind::Decline, None) => Decision::Declined(request.requested.unwrap_or(fixed.address)),
        (Kind::Request, None) => match requested_address(request) {
            None => Decision::Drop(DropReason::NoAddress),
            Some(requested) if requested == fixed.address => Decision::Ack(boot()),
            Some(requested) => Decision::Nak(format!(
                "requested {requested}, but {} is reserved for {}",
                fixed.address, machine.mac
            )),
        },
    }
}

/// The address a REQUEST is about: option 50 when selecting or after a reboot, `ciaddr` when
/// renewing or rebinding (RFC 2131 §4.3.2).
pub(crate) fn requested_address(request: &Request) -> Option<Ipv4Addr> {
    request.requested.or(Some(request.ciaddr)).filter(|address| !address.is_unspecified())
}

#[cfg(test)]
mod tests;
