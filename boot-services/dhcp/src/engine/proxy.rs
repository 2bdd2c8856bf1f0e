//! Serves boot files to machines whose address comes from another server.

use std::net::SocketAddrV4;

use crate::engine::bootfile::boot;
use crate::engine::reserved::acked;
use crate::engine::{Context, Destination, Engine, Output, destination, send};
use crate::events::{DhcpEvent, DropReason};
use crate::messages::boot::Boot;
use crate::messages::client::Stage;
use crate::messages::reply::{Answer, Proxy};
use crate::messages::request::{Kind, Request};
use crate::reservation::Reservation;

impl Engine {
    /// Answers at port 67: offers a boot file beside another server's offer of an address.
    ///
    /// A REQUEST at port 67 goes to the server that offered the address. The box answers only if
    /// the server identifier (option 54) is its own. A client that mistakes the boot file offer for
    /// a complete offer sends such a REQUEST.
    pub(super) fn proxy(
        &self,
        machine: &Reservation,
        request: &Request,
        ctx: Context<'_>,
    ) -> Vec<Output> {
        let (mac, config) = (request.mac, &self.config);
        let boot = match self.proxied(machine, request) {
            Ok(boot) => boot,
            Err(reason) => return ctx.ignored(mac, reason),
        };
        let proxy = Proxy { config, request, boot: &boot, boot_server: false };
        let to = destination(request, std::net::Ipv4Addr::BROADCAST, false);
        // The client has no address yet, or none that this server can verify.
        let to = match to {
            Destination::Link { .. } => Destination::Broadcast,
            to => to,
        };
        match (request.kind, request.server_id) {
            (Kind::Discover, _) => {
                let offered = DhcpEvent::Offered { mac, address: request.ciaddr };
                send(proxy.message(Answer::Offer), to, false, offered)
            }
            (Kind::Request, Some(server)) if server == config.server => {
                let event = acked(request, request.ciaddr, &boot);
                send(proxy.message(Answer::Ack), to, false, event)
            }
            (_, Some(server)) => ctx.ignored(mac, DropReason::OtherServer(server)),
            _ => ctx.ignored(mac, DropReason::NotNetbooting),
        }
    }

    /// Answers a request at port 4011 with the boot file, to the sender's address and port.
    pub(super) fn boot_server(
        &self,
        machine: &Reservation,
        request: &Request,
        from: SocketAddrV4,
        ctx: Context<'_>,
    ) -> Vec<Output> {
        let (mac, config) = (request.mac, &self.config);
        let other = request.server_id.filter(|server| *server != config.server);
        match (request.kind, other, self.proxied(machine, request)) {
            (_, Some(server), _) => ctx.ignored(mac, DropReason::OtherServer(server)),
            (_, _, Err(reason)) => ctx.ignored(mac, reason),
            (Kind::Request | Kind::Inform, None, Ok(boot)) => {
                let event = acked(request, request.ciaddr, &boot);
                let proxy = Proxy { config, request, boot: &boot, boot_server: true };
                send(proxy.message(Answer::Ack), Destination::BootServer(from), false, event)
            }
            _ => ctx.ignored(mac, DropReason::NotNetbooting),
        }
    }

    fn proxied(&self, machine: &Reservation, request: &Request) -> Result<Boot, DropReason> {
        if request.client.stage == Stage::System {
            return Err(DropReason::NotNetbooting);
        }
        match boot(&self.config, machine, &request.client) {
            Boot::Exit | Boot::Nothing => Err(DropReason::NetbootNotAllowed),
            boot => Ok(boot),
        }
    }
}

#[cfg(test)]
mod tests;
