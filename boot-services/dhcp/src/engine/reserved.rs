//! Serves machines with a reserved address.

use std::net::Ipv4Addr;

use stdx::MacAddr;

use crate::engine::checks::Waiting;
use crate::engine::decide::{Decision, decide};
use crate::engine::{
    Engine, Gate, Output, World, destination, inform_destination, refusal_destination, send,
};
use crate::events::{Seen, Silence};
use crate::leases::table::RECHECK_SECS;
use crate::messages::boot::Boot;
use crate::messages::reply::{Answer, Grant, lease_secs, nak};
use crate::messages::request::{Kind, Request};
use crate::reservation::{Fixed, Reservation};

impl Engine {
    pub(super) fn reserved(
        &mut self,
        machine: &Reservation,
        fixed: Fixed,
        request: &Request,
        world: World<'_>,
    ) -> Vec<Output> {
        let (mac, address) = (request.mac, fixed.address);
        let decision = decide(&self.config, machine, fixed, request);
        if matches!(decision, Decision::Offer(_) | Decision::Ack(_))
            && let Some(holder) = self.table.holder(address, self.clock.at(world.now))
            && holder != mac
            && let Some(outputs) = self.reclaim(address, holder, request, world)
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
                let offered = Seen::Offered { mac, address };
                let mut outputs = send(grant(Answer::Offer, true, &boot), to, false, offered);
                self.question(fixed, request, world, &mut outputs);
                outputs
            }
            Decision::Ack(boot) => {
                let to = destination(request, address, request.ciaddr == address);
                let message = grant(Answer::Ack, true, &boot);
                // The record may be removed before the lease ends. The pool may have grown until
                // then, and must not give the address.
                let kept = self.table.is_beside_pool(address);
                if kept {
                    let secs = lease_secs(machine);
                    self.table.bind_reserved(address, mac, secs, self.clock.at(world.now));
                }
                send(message, to, kept, acked(request, address, &boot))
            }
            Decision::Inform(boot) => {
                let Some(to) = inform_destination(request) else { return Vec::new() };
                let seen = acked(request, request.ciaddr, &boot);
                send(grant(Answer::Ack, false, &boot), to, false, seen)
            }
            Decision::Nak(reason) => {
                let message = nak(config, request, &reason);
                let refused = Seen::Refused { mac, reason };
                send(message, refusal_destination(request), false, refused)
            }
            Decision::Released(address) => {
                self.table.release(address, mac, self.clock.at(world.now));
                world.observer.seen(Seen::Released { mac, address });
                Vec::new()
            }
            Decision::Declined(address) => {
                world.observer.seen(Seen::Declined { mac, address });
                Vec::new()
            }
            Decision::Silence(reason) => world.ignored(mac, reason),
        }
    }

    /// Takes a reserved address back from its former machine, such as a replaced board, after a
    /// check that it is free. `None` if no check is needed.
    fn reclaim(
        &mut self,
        address: Ipv4Addr,
        former: MacAddr,
        request: &Request,
        world: World<'_>,
    ) -> Option<Vec<Output>> {
        let mac = request.mac;
        let leased = world.ignored(mac, Silence::LeasedTo(former));
        if request.kind != Kind::Discover || !self.table.is_reserved(address) {
            return Some(leased);
        }
        if !self.config.conflict_checks {
            return if self.table.give_way(address, former) { None } else { Some(leased) };
        }
        if self.checks.renew(address, request, world.now) {
            return Some(leased);
        }
        let waiting = Waiting::Reclaim { request: Box::new(request.clone()), former };
        let begun = self.checks.begin(address, waiting, world.now);
        Some(if begun { vec![Output::Check { address }] } else { leased })
    }

    /// Offers a reserved address after a check found it free.
    pub(super) fn reclaimed(
        &mut self,
        address: Ipv4Addr,
        former: MacAddr,
        request: &Request,
        world: World<'_>,
    ) -> Vec<Output> {
        let known = world.directory.by_mac(request.mac);
        let fixed = known.as_ref().and_then(|machine| machine.fixed);
        match (known, fixed) {
            (Some(machine), Some(fixed))
                if fixed.address == address
                    && self.gate == Gate::Open
                    && self.table.give_way(address, former) =>
            {
                self.reserved(&machine, fixed, request, world)
            }
            _ => Vec::new(),
        }
    }

    /// Reports contradictions between the request and the record. The record decides in any case.
    fn question(
        &mut self,
        fixed: Fixed,
        request: &Request,
        world: World<'_>,
        outputs: &mut Vec<Output>,
    ) {
        let (mac, address) = (request.mac, fixed.address);
        let link = self.link_of(request);
        let subnet = self.config.subnet_of(link);
        if subnet.is_some() && subnet != self.config.subnet_of(address) {
            world.observer.seen(Seen::OutsideSubnet { mac, address, link });
        }
        let lately = self
            .checked
            .seen_at(address)
            .is_some_and(|at| world.now.saturating_duration_since(at).as_secs() < RECHECK_SECS);
        if self.config.conflict_checks
            && !lately
            && self.checks.begin(address, Waiting::Report(mac), world.now)
        {
            self.checked.touch(address, world.now, || ());
            outputs.push(Output::Check { address });
        }
    }
}

/// Event to report for an ACK.
pub(super) fn acked(request: &Request, address: Ipv4Addr, boot: &Boot) -> Seen {
    let file = boot.file().map(str::to_owned);
    Seen::Acked { mac: request.mac, address, file }
}
