//! Serves machines whose address comes from a pool.

use std::net::Ipv4Addr;

use stdx::MacAddr;

use crate::config::subnet::Subnet;
use crate::engine::bootfile::boot;
use crate::engine::checks::Waiting;
use crate::engine::decide::asked_address;
use crate::engine::reserved::acked;
use crate::engine::{
    Engine, Gate, Output, World, destination, inform_destination, refusal_destination, send,
};
use crate::events::{Seen, Silence};
use crate::messages::reply::{Answer, Grant, nak};
use crate::messages::request::{Kind, Request};
use crate::reservation::{Fixed, Reservation};

/// Maximum addresses tried for one DISCOVER when other stations use the pool's addresses. The
/// client's next DISCOVER continues the search.
const MAX_TRIED: u32 = 4;

impl Engine {
    pub(super) fn dynamic(
        &mut self,
        known: Option<Reservation>,
        request: &Request,
        world: World<'_>,
    ) -> Vec<Output> {
        let mac = request.mac;
        let other = request.server_id.filter(|server| *server != self.config.server);
        let link = self.link_of(request);
        let subnet = self.config.subnet_of(link);
        let now = self.clock.at(world.now);
        match (request.kind, other, subnet) {
            (Kind::Discover, _, Some(subnet)) => self.discover(known, subnet, request, 0, world),
            (_, Some(server), _) => {
                if let Some(subnet) = subnet {
                    self.table.withdraw(mac, subnet, now);
                }
                world.ignored(mac, Silence::OtherServer(server))
            }
            (Kind::Request, None, _) => self.request(known, subnet, request, world),
            (Kind::Inform, None, Some(subnet)) => {
                let fixed = self.fixed(subnet, request.ciaddr);
                let Some(to) = inform_destination(request) else { return Vec::new() };
                let (message, seen) = self.granted(known, subnet, fixed, request, Answer::Ack);
                send(message, to, false, seen)
            }
            (Kind::Release, None, _) => {
                let address = request.ciaddr;
                if !self.table.release(address, mac, now) {
                    return world.ignored(mac, Silence::NotOurs(address));
                }
                world.observer.seen(Seen::Released { mac, address });
                Vec::new()
            }
            (Kind::Decline, None, _) => {
                let address = request.requested.unwrap_or(request.ciaddr);
                if !self.table.quarantine(address, mac, now) {
                    return world.ignored(mac, Silence::NotOurs(address));
                }
                world.observer.seen(Seen::Declined { mac, address });
                Vec::new()
            }
            (Kind::Discover | Kind::Inform, _, None) => world.ignored(mac, Silence::NoSubnet(link)),
        }
    }

    /// Offers an address, at once or when it has been checked.
    fn discover(
        &mut self,
        known: Option<Reservation>,
        subnet: usize,
        request: &Request,
        tried: u32,
        world: World<'_>,
    ) -> Vec<Output> {
        let mac = request.mac;
        let now = self.clock.at(world.now);
        let hope = request.requested;
        let Some(choice) = self.table.offer(mac, subnet, hope, world.directory, now) else {
            return world.ignored(mac, Silence::PoolExhausted);
        };
        let address = choice.address;
        if self.config.conflict_checks {
            if self.checks.renew(address, request, world.now) {
                return world.ignored(mac, Silence::Checking(address));
            }
            if choice.unproven {
                let waiting = Waiting::Offer { request: Box::new(request.clone()), tried };
                let begun = self.checks.begin(address, waiting, world.now);
                world.observer.seen(Seen::Ignored { mac, reason: Silence::Checking(address) });
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
        let (message, seen) = self.granted(known, subnet, fixed, request, Answer::Offer);
        send(message, destination(request, address, false), false, seen)
    }

    /// Continues a request that waited for the check of an address.
    pub(super) fn conclude(
        &mut self,
        address: Ipv4Addr,
        holder: Option<MacAddr>,
        world: World<'_>,
    ) -> Vec<Output> {
        let (mac, offer) = match self.checks.end(address) {
            None => return Vec::new(),
            Some(Waiting::Report(mac)) => (mac, None),
            Some(Waiting::Offer { request, tried }) => (request.mac, Some((request, tried))),
            Some(Waiting::Reclaim { request, former }) if holder.is_none() => {
                return self.reclaimed(address, former, &request, world);
            }
            Some(Waiting::Reclaim { request, .. }) => (request.mac, None),
        };
        let foreign = holder.filter(|holder| *holder != mac);
        if let Some(holder) = foreign {
            world.observer.seen(Seen::Conflict { mac, address, holder });
        }
        let Some((request, tried)) = offer else { return Vec::new() };
        let known = world.directory.by_mac(mac);
        let Some(subnet) = self.config.subnet_of(self.link_of(&request)) else { return Vec::new() };
        let now = self.clock.at(world.now);
        if foreign.is_some() {
            self.table.quarantine(address, mac, now);
            if self.gate != Gate::Open {
                return world.ignored(mac, Silence::Held);
            }
            if tried + 1 >= MAX_TRIED {
                return world.ignored(mac, Silence::PoolExhausted);
            }
            return self.discover(known, subnet, &request, tried + 1, world);
        }
        // During the check the service may have been closed, or the offer may have expired.
        let still = self.table.owned(mac, subnet) == Some(address)
            && self.table.may_give(address, mac, subnet, world.directory, now)
            && self.gate == Gate::Open;
        if still { self.offer(known, subnet, address, &request) } else { Vec::new() }
    }

    /// Handles a REQUEST (RFC 2131 §4.3.2). A machine without a record and without an address of
    /// ours is never refused.
    fn request(
        &mut self,
        known: Option<Reservation>,
        subnet: Option<usize>,
        request: &Request,
        world: World<'_>,
    ) -> Vec<Output> {
        let mac = request.mac;
        let now = self.clock.at(world.now);
        let Some(asked) = asked_address(request) else {
            return world.ignored(mac, Silence::NoAddress);
        };
        let own = self.table.at(asked).is_some_and(|row| row.mac == mac);
        let owned = subnet.and_then(|subnet| self.table.owned(mac, subnet));
        let selecting = request.server_id.is_some();
        if let Some(subnet) = subnet
            // A client that selects an offer from before a restart is treated as the owner, unless
            // it owns another address here.
            && (own || (selecting && owned.is_none()))
            && self.table.may_give(asked, mac, subnet, world.directory, now)
        {
            self.table.bind(asked, mac, self.config.subnets[subnet].lease_secs, now);
            let fixed = self.fixed(subnet, asked);
            let (message, seen) = self.granted(known, subnet, fixed, request, Answer::Ack);
            let to = destination(request, asked, request.ciaddr == asked);
            return send(message, to, true, seen);
        }
        if known.is_none() && !own && owned.is_none() {
            return world.ignored(mac, Silence::NotOurs(asked));
        }
        let reason = match owned.filter(|owned| *owned != asked) {
            Some(owned) => format!("requested {asked}, but {mac} has the lease of {owned}"),
            None => format!("requested {asked}, which {mac} cannot have on this network"),
        };
        let message = nak(&self.config, request, &reason);
        send(message, refusal_destination(request), false, Seen::Refused { mac, reason })
    }

    fn fixed(&self, subnet: usize, address: Ipv4Addr) -> Fixed {
        Fixed { address, netmask: self.config.subnets[subnet].prefix.netmask() }
    }

    /// Message of an offer or an ACK, and the event to report; for an INFORM without lease.
    fn granted(
        &self,
        known: Option<Reservation>,
        subnet: usize,
        fixed: Fixed,
        request: &Request,
        answer: Answer,
    ) -> (Vec<u8>, Seen) {
        let config = &self.config;
        let machine = self.known_or_stranger(known, request.mac);
        let machine = &settled(machine, &config.subnets[subnet]);
        let boot = boot(config, machine, &request.client);
        let (mac, address) = (request.mac, fixed.address);
        let seen = match answer {
            Answer::Ack => acked(request, address, &boot),
            _ => Seen::Offered { mac, address },
        };
        let lease = request.kind != Kind::Inform;
        let grant = Grant { config, machine, fixed, request, boot: &boot };
        (grant.message(answer, lease), seen)
    }
}

/// Completes the machine's record with the subnet's settings. The lease time is always the
/// subnet's, as the address is.
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
