//! Serves machines whose address comes from a pool.

use std::net::Ipv4Addr;

use stdx::MacAddr;

use crate::config::subnet::Subnet;
use crate::engine::bootfile::boot;
use crate::engine::checks::PendingCheck;
use crate::engine::decide::requested_address;
use crate::engine::reserved::acked;
use crate::engine::{
    Context, Engine, Output, ServeMode, destination, inform_destination, refusal_destination, send,
};
use crate::events::{DhcpEvent, DropReason};
use crate::messages::reply::{Answer, Grant, nak};
use crate::messages::request::{Kind, Request};
use crate::reservation::{FixedAddress, Reservation};

/// Maximum addresses that are checked for one DISCOVER while other stations use the pool's
/// addresses. The client's next DISCOVER continues the search.
const MAX_TRIED: u32 = 4;

impl Engine {
    pub(super) fn dynamic(
        &mut self,
        known: Option<Reservation>,
        request: &Request,
        ctx: Context<'_>,
    ) -> Vec<Output> {
        let mac = request.mac;
        let other = request.server_id.filter(|server| *server != self.config.server);
        let link = self.link_of(request);
        let subnet = self.config.subnet_of(link);
        let now = self.clock.at(ctx.now);
        match (request.kind, other, subnet) {
            (Kind::Discover, _, Some(subnet)) => self.discover(known, subnet, request, 0, ctx),
            (_, Some(server), _) => {
                if let Some(subnet) = subnet {
                    self.table.withdraw(mac, subnet, now);
                }
                ctx.ignored(mac, DropReason::OtherServer(server))
            }
            (Kind::Request, None, _) => self.request(known, subnet, request, ctx),
            (Kind::Inform, None, Some(subnet)) => {
                let fixed = self.fixed(subnet, request.ciaddr);
                let Some(to) = inform_destination(request) else { return Vec::new() };
                let (message, event) = self.granted(known, subnet, fixed, request, Answer::Ack);
                send(message, to, false, event)
            }
            (Kind::Release, None, _) => {
                let address = request.ciaddr;
                if !self.table.release(address, mac, now) {
                    return ctx.ignored(mac, DropReason::NotOurs(address));
                }
                ctx.observe(DhcpEvent::Released { mac, address });
                Vec::new()
            }
            (Kind::Decline, None, _) => {
                let address = request.requested.unwrap_or(request.ciaddr);
                if !self.table.quarantine(address, mac, now) {
                    return ctx.ignored(mac, DropReason::NotOurs(address));
                }
                ctx.observe(DhcpEvent::Declined { mac, address });
                Vec::new()
            }
            (Kind::Discover | Kind::Inform, _, None) => {
                ctx.ignored(mac, DropReason::NoSubnet(link))
            }
        }
    }

    /// Answers a DISCOVER: offers an address, at once or after a check that no station uses it.
    fn discover(
        &mut self,
        known: Option<Reservation>,
        subnet: usize,
        request: &Request,
        tried: u32,
        ctx: Context<'_>,
    ) -> Vec<Output> {
        let mac = request.mac;
        let now = self.clock.at(ctx.now);
        let requested = request.requested;
        let Some(choice) = self.table.offer(mac, subnet, requested, ctx.directory, now) else {
            return ctx.ignored(mac, DropReason::PoolExhausted);
        };
        let address = choice.address;
        if self.config.conflict_checks {
            if self.checks.renew(address, request, ctx.now) {
                return ctx.ignored(mac, DropReason::Checking(address));
            }
            if choice.unproven {
                let waiting = PendingCheck::Offer { request: Box::new(request.clone()), tried };
                let begun = self.checks.begin(address, waiting, ctx.now);
                ctx.observer
                    .observe(DhcpEvent::Ignored { mac, reason: DropReason::Checking(address) });
                return if begun { vec![Output::Check { address }] } else { Vec::new() };
            }
        }
        self.offer(known, subnet, address, request)
    }

    fn offer(
        &self,
        known: Option<Reservation>,
        subnet: usize,
        address: Ipv4Addr,
        request: &Request,
    ) -> Vec<Output> {
        let fixed = self.fixed(subnet, address);
        let (message, event) = self.granted(known, subnet, fixed, request, Answer::Offer);
        send(message, destination(request, address, false), false, event)
    }

    /// Continues a request that waited for the check of an address.
    pub(super) fn conclude(
        &mut self,
        address: Ipv4Addr,
        holder: Option<MacAddr>,
        ctx: Context<'_>,
    ) -> Vec<Output> {
        let (mac, offer) = match self.checks.end(address) {
            None => return Vec::new(),
            Some(PendingCheck::Report(mac)) => (mac, None),
            Some(PendingCheck::Offer { request, tried }) => (request.mac, Some((request, tried))),
            Some(PendingCheck::Reclaim { request, former }) if holder.is_none() => {
                return self.reclaimed(address, former, &request, ctx);
            }
            Some(PendingCheck::Reclaim { request, .. }) => (request.mac, None),
        };
        let foreign = holder.filter(|holder| *holder != mac);
        if let Some(holder) = foreign {
            ctx.observe(DhcpEvent::Conflict { mac, address, holder });
        }
        let Some((request, tried)) = offer else { return Vec::new() };
        let known = ctx.directory.by_mac(mac);
        let Some(subnet) = self.config.subnet_of(self.link_of(&request)) else { return Vec::new() };
        let now = self.clock.at(ctx.now);
        if foreign.is_some() {
            self.table.quarantine(address, mac, now);
            if self.serve_mode != ServeMode::Open {
                return ctx.ignored(mac, DropReason::Held);
            }
            if tried + 1 >= MAX_TRIED {
                return ctx.ignored(mac, DropReason::PoolExhausted);
            }
            return self.discover(known, subnet, &request, tried + 1, ctx);
        }
        // During the check the service may have been closed, or the offer may have expired.
        let still = self.table.owned(mac, subnet) == Some(address)
            && self.table.may_give(address, mac, subnet, ctx.directory, now)
            && self.serve_mode == ServeMode::Open;
        if still { self.offer(known, subnet, address, &request) } else { Vec::new() }
    }

    /// Handles a REQUEST (RFC 2131 §4.3.2). A machine without a record and without an address of
    /// this server never gets a NAK.
    fn request(
        &mut self,
        known: Option<Reservation>,
        subnet: Option<usize>,
        request: &Request,
        ctx: Context<'_>,
    ) -> Vec<Output> {
        let mac = request.mac;
        let now = self.clock.at(ctx.now);
        let Some(requested) = requested_address(request) else {
            return ctx.ignored(mac, DropReason::NoAddress);
        };
        let own = self.table.at(requested).is_some_and(|row| row.mac == mac);
        let owned = subnet.and_then(|subnet| self.table.owned(mac, subnet));
        let selecting = request.server_id.is_some();
        if let Some(subnet) = subnet
            // A client that selects an offer from before a restart is treated as the owner, unless
            // it owns another address here.
            && (own || (selecting && owned.is_none()))
            && self.table.may_give(requested, mac, subnet, ctx.directory, now)
        {
            self.table.bind(requested, mac, self.config.subnets[subnet].lease_secs, now);
            let fixed = self.fixed(subnet, requested);
            let (message, event) = self.granted(known, subnet, fixed, request, Answer::Ack);
            let to = destination(request, requested, request.ciaddr == requested);
            return send(message, to, true, event);
        }
        if known.is_none() && !own && owned.is_none() {
            return ctx.ignored(mac, DropReason::NotOurs(requested));
        }
        let reason = match owned.filter(|owned| *owned != requested) {
            Some(owned) => format!("requested {requested}, but {mac} has the lease of {owned}"),
            None => format!("requested {requested}, which {mac} cannot have on this network"),
        };
        let message = nak(&self.config, request, &reason);
        send(message, refusal_destination(request), false, DhcpEvent::Refused { mac, reason })
    }

    fn fixed(&self, subnet: usize, address: Ipv4Addr) -> FixedAddress {
        FixedAddress { address, netmask: self.config.subnets[subnet].prefix.netmask() }
    }

    /// Returns the message of an offer or ACK, and the event to report. The ACK of an INFORM has no
    /// lease.
    fn granted(
        &self,
        known: Option<Reservation>,
        subnet: usize,
        fixed: FixedAddress,
        request: &Request,
        answer: Answer,
    ) -> (Vec<u8>, DhcpEvent) {
        let config = &self.config;
        let machine = self.record_or_default(known, request.mac);
        let machine = &settled(machine, &config.subnets[subnet]);
        let boot = boot(config, machine, &request.client);
        let (mac, address) = (request.mac, fixed.address);
        let event = match answer {
            Answer::Ack => acked(request, address, &boot),
            _ => DhcpEvent::Offered { mac, address },
        };
        let lease = request.kind != Kind::Inform;
        let grant = Grant { config, machine, fixed, request, boot: &boot };
        (grant.message(answer, lease), event)
    }
}

/// Returns the machine's record, completed with the subnet's settings. The lease time is always the
/// subnet's, because the address comes from the subnet too.
fn settled(mut machine: Reservation, subnet: &Subnet) -> Reservation {
    machine.lease_secs = subnet.lease_secs;
    machine.gateway = machine.gateway.or(subnet.gateway);
    if machine.name_servers.is_empty() {
        machine.name_servers.clone_from(&subnet.name_servers);
    }
    if machine.time_servers.is_empty() {
        machine.time_servers.clone_from(&subnet.time_servers);
    }
    if machine.domain_name.is_none() {
        machine.domain_name.clone_from(&subnet.domain_name);
    }
    machine
}

#[cfg(test)]
mod tests;
