//! The machine's DHCP exchanges, from DISCOVER to the last renewal (RFC 2131 §4.4).

use std::net::Ipv4Addr;

use crate::clock::{Moment, SECOND};
use crate::machine::{Act, Lease, Machine, Phase, Place, Stage, Turn};
use crate::message::{ACK, Ask, Client, DECLINE, DISCOVER, NAK, OFFER, RELEASE, REQUEST, Reply};

/// Minimum time between two renewals. RFC 2131 requires a minute, but the leases here are short.
const RENEW_AGAIN: Moment = 20 * SECOND;
/// The least time between a DECLINE and the next DISCOVER (RFC 2131 §3.1.5).
const DECLINED: Moment = 10 * SECOND;
/// Pause between a NAK and the next DISCOVER.
const REFUSED: Moment = SECOND;
/// Waits after each request to port 4011 (PXE 2.1 §2.2.3).
const BOOT_SERVER_WAITS: [Moment; 4] = [SECOND, 2 * SECOND, 3 * SECOND, 4 * SECOND];

impl Machine {
    /// Begins a new DHCP exchange.
    pub(super) fn begin(&mut self, turn: &mut Turn<'_>) {
        self.xid = turn.rng.u32(..);
        (self.offer, self.proxy, self.tries, self.began) = (None, None, 0, turn.now);
        if self.stage == Stage::System && self.remembered.is_some() {
            self.phase = Phase::Requesting { rebooting: true };
            self.send_request(turn);
        } else {
            self.phase = Phase::Selecting;
            self.send_discover(turn);
        }
        turn.wake(self.manners().waits[0]);
    }

    /// Handles a DHCP message from a server.
    pub fn heard(&mut self, reply: Reply, turn: &mut Turn<'_>) {
        if reply.xid != self.xid || self.stage == Stage::Off {
            return;
        }
        match (&self.phase, reply.kind) {
            (Phase::Selecting, OFFER) => self.offered(reply, turn),
            (Phase::Requesting { rebooting }, ACK | NAK) => {
                let chosen = self.offer.as_ref().map(|offer| offer.server);
                if *rebooting || chosen == Some(reply.server) {
                    self.answered(reply, turn);
                }
            }
            (Phase::AskingBootServer, ACK) if !reply.file.is_empty() => {
                self.load(reply.file, turn);
            }
            (Phase::Bound, ACK | NAK) if self.is_renewing(turn.now) => self.renewed(&reply, turn),
            _ => {}
        }
    }

    /// Handles the result of the probe of the machine's new address.
    pub fn probed(&mut self, is_used: bool, turn: &mut Turn<'_>) {
        let (Phase::Probing, Some(lease)) = (&self.phase, self.lease) else { return };
        if is_used {
            let ask = Ask {
                requested: Some(lease.address),
                server: Some(lease.server),
                ..self.ask(DECLINE)
            };
            self.send(&ask, Place::Everybody, turn);
            turn.acts.push(Act::GivesBack { address: lease.address });
            self.leave(turn);
            self.remembered = None;
            let after = turn.between(DECLINED, 2 * DECLINED);
            return self.rest(after, turn);
        }
        self.phase = Phase::Bound;
        turn.acts.push(Act::Booted);
        self.wait_for_renewal(lease, turn);
    }

    pub(super) fn select_again(&mut self, turn: &mut Turn<'_>) {
        if self.offer.is_some() {
            return self.request(turn);
        }
        self.tries += 1;
        match self.manners().waits.get(self.tries) {
            Some(wait) => {
                self.send_discover(turn);
                turn.wake(*wait);
            }
            None => self.fail(turn),
        }
    }

    pub(super) fn request_again(&mut self, turn: &mut Turn<'_>) {
        self.tries += 1;
        match self.manners().waits.get(self.tries) {
            Some(wait) => {
                self.send_request(turn);
                turn.wake(*wait);
            }
            None => {
                // The server of the offer, or of the former lease, is gone.
                self.remembered = None;
                self.begin(turn);
            }
        }
    }

    pub(super) fn ask_boot_server_again(&mut self, turn: &mut Turn<'_>) {
        self.tries += 1;
        match BOOT_SERVER_WAITS.get(self.tries) {
            Some(wait) => {
                self.send_to_boot_server(turn);
                turn.wake(*wait);
            }
            None => self.fail(turn),
        }
    }

    /// Sends a renewal, because at least half of the lease is over. After the end of the lease,
    /// begins a new exchange.
    pub(super) fn renew(&mut self, turn: &mut Turn<'_>) {
        let Some(lease) = self.lease else { return };
        let (_, rebinding) = lease.times();
        if turn.now >= lease.until {
            turn.acts.push(Act::Lost);
            self.leave(turn);
            return self.begin(turn);
        }
        let (to, next) = if turn.now >= rebinding {
            (Place::Everybody, lease.until)
        } else {
            (Place::Server(lease.server), rebinding)
        };
        if self.tries == 0 {
            self.xid = turn.rng.u32(..);
        }
        self.tries += 1;
        let ask = Ask { ciaddr: lease.address, ..self.ask(REQUEST) };
        self.send(&ask, to, turn);
        let left = next - turn.now;
        turn.wake((left / 2).max(RENEW_AGAIN).min(left));
    }

    pub(super) fn release(&mut self, lease: Lease, turn: &mut Turn<'_>) {
        let ask = Ask { ciaddr: lease.address, server: Some(lease.server), ..self.ask(RELEASE) };
        self.send(&ask, Place::Server(lease.server), turn);
        turn.acts.push(Act::GivesBack { address: lease.address });
    }

    fn offered(&mut self, reply: Reply, turn: &mut Turn<'_>) {
        let place = if reply.address.is_unspecified() { &mut self.proxy } else { &mut self.offer };
        place.get_or_insert(reply);
        let Some(offer) = &self.offer else { return };
        let collected = self.began + self.manners().collects;
        let is_ipxe = matches!(self.client(), Client::IpxeBios | Client::IpxeEfi);
        let has_all = is_ipxe && (offer.direct || self.proxy.is_some());
        if has_all || turn.now >= collected {
            self.request(turn);
        } else {
            turn.acts.push(Act::Wake { at: collected });
        }
    }

    fn request(&mut self, turn: &mut Turn<'_>) {
        self.phase = Phase::Requesting { rebooting: false };
        self.tries = 0;
        self.send_request(turn);
        turn.wake(self.manners().waits[0]);
    }

    fn answered(&mut self, reply: Reply, turn: &mut Turn<'_>) {
        if reply.kind == NAK {
            self.remembered = None;
            return self.rest(REFUSED, turn);
        }
        self.take(&reply, turn);
        if self.stage == Stage::System {
            self.phase = Phase::Probing;
            self.exchange += 1;
            return turn.acts.push(Act::Probe { address: reply.address });
        }
        let proxy = self.proxy.as_ref();
        if !reply.file.is_empty() {
            self.load(reply.file, turn);
        } else if proxy.is_some_and(|proxy| self.client() == Client::Edk2Pxe && !proxy.direct) {
            self.phase = Phase::AskingBootServer;
            (self.xid, self.tries) = (turn.rng.u32(..), 0);
            self.send_to_boot_server(turn);
            turn.wake(BOOT_SERVER_WAITS[0]);
        } else if let Some(file) = proxy.map(|proxy| proxy.file.clone()) {
            self.load(file, turn);
        } else {
            self.fail(turn);
        }
    }

    fn renewed(&mut self, reply: &Reply, turn: &mut Turn<'_>) {
        if reply.kind == NAK {
            self.leave(turn);
            return self.rest(REFUSED, turn);
        }
        self.take(reply, turn);
        if let Some(lease) = self.lease {
            self.wait_for_renewal(lease, turn);
        }
    }

    /// Takes the lease of an ACK. The lease time counts from now, as in udhcpc, not from the
    /// REQUEST as RFC 2131 requires: the box must tolerate less careful clients.
    fn take(&mut self, reply: &Reply, turn: &mut Turn<'_>) {
        if self.address() != Some(reply.address) {
            self.leave(turn);
        }
        let (address, server, since) = (reply.address, reply.server, turn.now);
        let until = since + Moment::from(reply.lease_secs) * SECOND;
        self.lease = Some(Lease { address, server, since, until });
        turn.acts.push(Act::Uses { address, until });
    }

    fn wait_for_renewal(&mut self, lease: Lease, turn: &mut Turn<'_>) {
        self.tries = 0;
        let (renewing, rebinding) = lease.times();
        let spread = turn.between(0, (rebinding - renewing) / 8 + 1);
        turn.acts.push(Act::Wake { at: renewing + spread });
    }

    fn is_renewing(&self, now: Moment) -> bool {
        self.tries > 0 && self.lease.is_some_and(|lease| now < lease.until)
    }

    fn ask(&self, kind: u8) -> Ask {
        let none = Ipv4Addr::UNSPECIFIED;
        let (xid, mac) = (self.xid, self.mac);
        Ask { kind, xid, mac, ciaddr: none, giaddr: none, requested: None, server: None }
    }

    fn send_discover(&self, turn: &mut Turn<'_>) {
        let requested = self.remembered.filter(|_| self.stage == Stage::System);
        self.send(&Ask { requested, ..self.ask(DISCOVER) }, Place::Everybody, turn);
    }

    fn send_request(&self, turn: &mut Turn<'_>) {
        let offer = self.offer.as_ref();
        let requested = offer.map(|offer| offer.address).or(self.remembered);
        let server = offer.map(|offer| offer.server);
        self.send(&Ask { requested, server, ..self.ask(REQUEST) }, Place::Everybody, turn);
    }

    fn send_to_boot_server(&self, turn: &mut Turn<'_>) {
        let (Some(proxy), Some(lease)) = (&self.proxy, self.lease) else { return };
        let ask = Ask { ciaddr: lease.address, ..self.ask(REQUEST) };
        self.send(&ask, Place::BootServer(proxy.server), turn);
    }

    fn send(&self, ask: &Ask, to: Place, turn: &mut Turn<'_>) {
        turn.acts.push(Act::Dhcp { bytes: ask.write(self.client()), to });
    }
}

impl Lease {
    /// T1 and T2 (RFC 2131 §4.4.5).
    fn times(self) -> (Moment, Moment) {
        let lasts = self.until - self.since;
        (self.since + lasts / 2, self.since + lasts / 8 * 7)
    }
}
