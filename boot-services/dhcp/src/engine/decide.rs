//! Decides about requests of machines with a reserved address: one decision for each request.

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
    /// Answer an INFORM with an ACK that has settings, but no address and no lease.
    Inform(Boot),
    /// Refuse a REQUEST with a NAK; the text goes into option 56.
    Nak(String),
    /// The machine released this address; no answer follows.
    Released(Ipv4Addr),
    /// The machine declined this address, because another station uses it; no answer follows.
    Declined(Ipv4Addr),
    /// Send no answer, for this reason.
    Drop(DropReason),
}

/// Decides about a request by RFC 2131 §4.3; the reservation counts as the lease.
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

/// Returns the address that a REQUEST is about: option 50 when selecting or after a reboot,
/// `ciaddr` when renewing or rebinding (RFC 2131 §4.3.2). `None` if the message has neither.
pub(crate) fn requested_address(request: &Request) -> Option<Ipv4Addr> {
    request.requested.or(Some(request.ciaddr)).filter(|address| !address.is_unspecified())
}

#[cfg(test)]
mod tests;
