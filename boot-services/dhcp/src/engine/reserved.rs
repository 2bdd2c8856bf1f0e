//! Serves machines with a reserved address.

use std::net::Ipv4Addr;

use stdx::MacAddr;

use crate::engine::checks::PendingCheck;
use crate::engine::decide::{Decision, decide};
use crate::engine::{
    Context, Engine, Output, ServeMode, destination, inform_destination, refusal_destination, send,
};
use crate::events::{DhcpEvent, DropReason};
use crate::leases::table::RECHECK_SECS;
use crate::messages::boot::Boot;
use crate::messages::reply::{Answer, Grant, lease_secs, nak};
use crate::messages::request::{Kind, Request};
use crate::reservation::{FixedAddress, Reservation};

impl Engine {
    pub(super) fn reserved(
        &mut self,
        machine: &Reservation,
        fixed: FixedAddress,
        request: &Request,
        ctx: Context<'_>,
    ) -> Vec<Output> {
        let (mac, address) = (request.mac, fixed.address);
        let decision = decide(&self.config, machine, fixed, request);
        if matches!(decision, Decision::Offer(_) | Decision::Ack(_))
            && let Some(holder) = self.table.holder(address, self.clock.at(ctx.now))
            && holder != mac
            && let Some(outputs) = self.reclaim(address, holder, request, ctx)
        {
            return outputs;
        }
        let config = &self.config;
        let grant = |answer, lease, boot: &Boot| {
            Grant { config, machine, fixed, request, boot }.message(answer, lease)
        };
        match decision {
            Decision::Offer(boot) => {
                let to = destination(request, address, false);
                let offered = DhcpEvent::Offered { mac, address };
                let mut outputs = send(grant(Answer::Offer, true, &boot), to, false, offered);
                self.report_contradictions(fixed, request, ctx, &mut outputs);
                outputs
            }
            Decision::Ack(boot) => {
                let to = destination(request, address, request.ciaddr == address);
                let message = grant(Answer::Ack, true, &boot);
                // The record may be removed before the lease ends. The pool may have grown until
                // then, and must not give the address.
                let is_stored = self.table.is_beside_pool(address);
                if is_stored {
                    let secs = lease_secs(machine);
                    self.table.bind_reserved(address, mac, secs, self.clock.at(ctx.now));
                }
                send(message, to, is_stored, acked(request, address, &boot))
            }
            Decision::Inform(boot) => {
                let Some(to) = inform_destination(request) else { return Vec::new() };
                let event = acked(request, request.ciaddr, &boot);
                send(grant(Answer::Ack, false, &boot), to, false, event)
            }
            Decision::Nak(reason) => {
                let message = nak(config, request, &reason);
                let refused = DhcpEvent::Refused { mac, reason };
                send(message, refusal_destination(request), false, refused)
            }
            Decision::Released(address) => {
                self.table.release(address, mac, self.clock.at(ctx.now));
                ctx.observe(DhcpEvent::Released { mac, address });
                Vec::new()
            }
            Decision::Declined(address) => {
                ctx.observe(DhcpEvent::Declined { mac, address });
                Vec::new()
            }
            Decision::Drop(reason) => ctx.ignored(mac, reason),
        }
    }

    /// Reassigns a reserved address that a former machine still leases, such as a replaced board. A
    /// check first shows that no station uses the address. `None` if the caller can answer at once.
    fn reclaim(
        &mut self,
        address: Ipv4Addr,
        former: MacAddr,
        request: &Request,
        ctx: Context<'_>,
    ) -> Option<Vec<Output>> {
        let mac = request.mac;
        let leased = ctx.ignored(mac, DropReason::LeasedTo(former));
        if request.kind != Kind::Discover || !self.table.is_reserved(address) {
            return Some(leased);
        }
        if !self.config.conflict_checks {
            return if self.table.give_way(address, former) { None } else { Some(leased) };
        }
        if self.checks.renew(address, request, ctx.now) {
            return Some(leased);
        }
        let waiting = PendingCheck::Reclaim { request: Box::new(request.clone()), former };
        let begun = self.checks.begin(address, waiting, ctx.now);
        Some(if begun { vec![Output::Check { address }] } else { leased })
    }

    /// Answers the waiting request after a check found its reserved address free. Empty if the
    /// record or the lease has changed meanwhile.
    pub(super) fn reclaimed(
        &mut self,
        address: Ipv4Addr,
        former: MacAddr,
        request: &Request,
        ctx: Context<'_>,
    ) -> Vec<Output> {
        let known = ctx.directory.by_mac(request.mac);
        let fixed = known.as_ref().and_then(|machine| machine.fixed);
        match (known, fixed) {
            (Some(machine), Some(fixed))
                if fixed.address == address
                    && self.serve_mode == ServeMode::Open
                    && self.table.give_way(address, former) =>
            {
                self.reserved(&machine, fixed, request, ctx)
            }
            _ => Vec::new(),
        }
    }

    /// Reports an address outside the client's network, and requests a check for conflicts. The
    /// machine gets the address of its record in any case.
    fn report_contradictions(
        &mut self,
        fixed: FixedAddress,
        request: &Request,
        ctx: Context<'_>,
        outputs: &mut Vec<Output>,
    ) {
        let (mac, address) = (request.mac, fixed.address);
        let link = self.link_of(request);
        let subnet = self.config.subnet_of(link);
        if subnet.is_some() && subnet != self.config.subnet_of(address) {
            ctx.observe(DhcpEvent::OutsideSubnet { mac, address, link });
        }
        let lately = self
            .checked
            .seen_at(address)
            .is_some_and(|at| ctx.now.saturating_duration_since(at).as_secs() < RECHECK_SECS);
        if self.config.conflict_checks
            && !lately
            && self.checks.begin(address, PendingCheck::Report(mac), ctx.now)
        {
            self.checked.touch(address, ctx.now, || ());
            outputs.push(Output::Check { address });
        }
    }
}

/// Returns the event to report for an ACK.
pub(super) fn acked(request: &Request, address: Ipv4Addr, boot: &Boot) -> DhcpEvent {
    let file = boot.file().map(str::to_owned);
    DhcpEvent::Acked { mac: request.mac, address, file }
}
