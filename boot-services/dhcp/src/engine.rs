//! DHCP service without its sockets: a datagram in, messages and their destinations out.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Instant;

use stdx::MacAddr;

use crate::config::{Config, Mode};
use crate::engine::checks::Checks;
use crate::engine::decide::asked_address;
use crate::engine::rate_limiter::{Pace, RateLimiter, Recent};
use crate::events::{Observer, Seen, Silence};
use crate::leases::table::Table;
use crate::leases::{Bound, Change, Lease, LeaseClock};
use crate::messages::request::{Kind, Malformed, Request};
use crate::reservation::{Directory, Netboot, Reservation};

pub(crate) mod bootfile;
mod checks;
mod decide;
mod dynamic;
mod proxy;
pub(crate) mod rate_limiter;
mod reserved;
mod sizes;

pub use sizes::Sizes;

/// Reserved addresses remembered as checked.
const MAX_CHECKED: usize = 4096;

/// Output of the engine for its caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// Send a message to a client.
    Send(Outgoing),
    /// Request to check if a station uses this address. The result goes to [`Engine::checked`].
    Check {
        /// The address, of the link itself or of one behind a relay.
        address: Ipv4Addr,
    },
}

/// A DHCP message to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing {
    /// Payload of the UDP datagram.
    pub message: Vec<u8>,
    /// Destination of the message.
    pub to: Destination,
    /// True if the message promises a lease: send it only after all changes taken from the engine
    /// so far are committed, and drop it if the commit fails.
    pub promises: bool,
    /// Event for the [`Observer`] after the message was sent.
    pub seen: Seen,
}

/// Destination of an answer (RFC 2131 §4.1), sent from UDP port 67 unless stated otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Destination {
    /// The relay agent, port 67.
    Relay(Ipv4Addr),
    /// A client that already uses its address, port 68, by the ordinary way.
    Address(Ipv4Addr),
    /// A client that was given `address` but cannot answer ARP for it yet: a frame to `mac`, port
    /// 68. iPXE's 2019 ROM needs this.
    Link {
        /// Destination of the Ethernet frame.
        mac: MacAddr,
        /// Destination of the datagram.
        address: Ipv4Addr,
    },
    /// Everyone on the link, port 68.
    Broadcast,
    /// The PXE client that sent its request to port 4011, answered from that port. EDK2 listens at
    /// its own 4011, iPXE at 68, and both drop answers from another port than 4011.
    BootServer(SocketAddrV4),
}

/// Serving state of the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    /// Serve clients as configured.
    Open,
    /// Another server gives addresses here: name boot files to machines that are being installed,
    /// so that they come to their end, and do nothing else.
    ProxyOnly,
    /// Answer nothing, but report requests.
    Closed,
}

/// State of the service: settings, leases of pool addresses, and limits.
///
/// The caller reads the waiting datagrams, passes each to [`Self::handle`] (or
/// [`Self::handle_boot_server`]), commits [`Self::take_changes`], sends, and then reports to the
/// observer. So one commit serves a batch, and no lease is promised or reported that a power cut
/// could revoke.
#[derive(Debug)]
pub struct Engine {
    config: Config,
    gate: Gate,
    guard: RateLimiter,
    clock: LeaseClock,
    table: Table,
    checks: Checks,
    checked: Recent<Ipv4Addr, ()>,
}

/// Context of one call.
#[derive(Clone, Copy)]
struct World<'a> {
    directory: &'a dyn Directory,
    observer: &'a dyn Observer,
    now: Instant,
}

impl World<'_> {
    fn ignored(&self, mac: MacAddr, reason: Silence) -> Vec<Output> {
        self.observer.seen(Seen::Ignored { mac, reason });
        Vec::new()
    }
}

impl Engine {
    /// Creates a service with these leases (none: [`Vec::new`]). `unix_secs` is the wall clock's
    /// time at `now`, which may be wrong: see [`LeaseClock`].
    pub fn new(config: Config, leases: &[Lease], unix_secs: u64, now: Instant) -> Self {
        Self {
            gate: Gate::Open,
            guard: RateLimiter::new(now),
            clock: LeaseClock::new(unix_secs, leases, now),
            table: Table::new(&config, leases),
            checks: Checks::new(now),
            checked: Recent::new(MAX_CHECKED),
            config,
        }
    }

    /// Takes a datagram that arrived at port 67.
    ///
    /// # Errors
    /// The datagram is not a client's message; worth a debug line, no more.
    pub fn handle(
        &mut self,
        datagram: &[u8],
        directory: &dyn Directory,
        observer: &dyn Observer,
        now: Instant,
    ) -> Result<Vec<Output>, Malformed> {
        let request = Request::read(datagram)?;
        let world = World { directory, observer, now };
        Ok(self.admit(&request, None, world))
    }

    /// Takes a datagram that arrived at port 4011, where a PXE client with an address from another
    /// server requests its boot file (PXE 2.1 §2.2.3).
    ///
    /// # Errors
    /// As [`Self::handle`].
    pub fn handle_boot_server(
        &mut self,
        datagram: &[u8],
        from: SocketAddrV4,
        directory: &dyn Directory,
        observer: &dyn Observer,
        now: Instant,
    ) -> Result<Vec<Output>, Malformed> {
        let request = Request::read(datagram)?;
        let world = World { directory, observer, now };
        Ok(self.admit(&request, Some(from), world))
    }

    /// Continues after [`Output::Check`]; `holder` is the station that answered for the address, if
    /// any.
    pub fn checked(
        &mut self,
        address: Ipv4Addr,
        holder: Option<MacAddr>,
        directory: &dyn Directory,
        observer: &dyn Observer,
        now: Instant,
    ) -> Vec<Output> {
        self.conclude(address, holder, World { directory, observer, now })
    }

    /// Changes of leases since the last call, to be committed in this order.
    pub fn take_changes(&mut self) -> Vec<Change> {
        self.table.take_changes()
    }

    /// Sets the serving state for all following requests.
    pub fn set_gate(&mut self, gate: Gate) {
        self.gate = gate;
    }

    /// Applies a new configuration. Leases stay; a lease outside of the new pools counts until it
    /// ends, and its renewal is refused.
    pub fn reconfigure(&mut self, config: Config, now: Instant) {
        self.table.reconfigure(&config);
        self.config = config;
        self.sweep(now);
    }

    /// Removes expired entries; once a minute is enough.
    pub fn sweep(&mut self, now: Instant) {
        self.table.sweep(self.clock.at(now));
    }

    /// Every lease and offer of a pool address, in any order; times are [`Self::lease_time`]'s.
    pub fn leases(&self) -> impl Iterator<Item = Lease> + '_ {
        self.table.leases()
    }

    /// Counts of the pool addresses that are given away.
    pub fn bound(&self, now: Instant) -> Bound {
        self.table.bound(self.clock.at(now))
    }

    /// Sizes of the tables.
    pub fn sizes(&self) -> Sizes {
        Sizes {
            leases: self.table.len(),
            checks: self.checks.len(),
            checked: self.checked.len(),
            machines: self.guard.machines.len(),
            strangers: self.guard.strangers.len(),
        }
    }

    /// Returns the lease clock's time at `now`.
    pub fn lease_time(&self, now: Instant) -> u64 {
        self.clock.at(now)
    }

    /// Identifies the machine, and answers it if allowed.
    fn admit(
        &mut self,
        request: &Request,
        boot_server: Option<SocketAddrV4>,
        world: World<'_>,
    ) -> Vec<Output> {
        let (mac, stage) = (request.mac, request.client.stage);
        let known = world.directory.by_mac(mac);
        if known.is_none() {
            let silence = self.silence_to_stranger(request);
            if self.guard.report_stranger(mac, world.now) {
                let (vendor_class, arch) =
                    (request.client.vendor_class.clone(), request.client.arch);
                world.observer.seen(Seen::UnknownMac { mac, vendor_class, arch, silence });
            }
            if silence.is_some() {
                return Vec::new();
            }
        }
        match self.guard.pace(mac, world.now) {
            Pace::Fine => {}
            Pace::JustTooFast => return world.ignored(mac, Silence::TooFast),
            Pace::StillTooFast => return Vec::new(),
        }
        match (request.kind, asked_address(request)) {
            (Kind::Discover, _) => world.observer.seen(Seen::Discover { mac, stage }),
            (Kind::Request, Some(address)) => {
                world.observer.seen(Seen::Requested { mac, address, stage });
            }
            _ => {}
        }
        match (&known, self.gate) {
            (_, Gate::Closed) => return world.ignored(mac, Silence::Held),
            (Some(machine), _) if machine.disable_dhcp => {
                return world.ignored(mac, Silence::Disabled);
            }
            (Some(machine), Gate::ProxyOnly)
                if !machine.installing || machine.netboot == Netboot::NotAllowed =>
            {
                return world.ignored(mac, Silence::Held);
            }
            _ => {}
        }
        match boot_server {
            Some(from) => {
                self.boot_server(&self.known_or_stranger(known, mac), request, from, world)
            }
            None => self.serve(known, request, world),
        }
    }

    fn serve(
        &mut self,
        known: Option<Reservation>,
        request: &Request,
        world: World<'_>,
    ) -> Vec<Output> {
        let mac = request.mac;
        let mode = if self.gate == Gate::ProxyOnly { Mode::Proxy } else { self.config.mode };
        let fixed = known.as_ref().and_then(|machine| Some((machine, machine.fixed?)));
        match (mode, fixed) {
            (Mode::Proxy, _) => self.proxy(&self.known_or_stranger(known, mac), request, world),
            (_, Some((machine, fixed))) => self.reserved(machine, fixed, request, world),
            (Mode::Reserved, None) if known.is_some() && !self.once_held(request) => {
                world.ignored(mac, Silence::NoReservation)
            }
            _ => self.dynamic(known, request, world),
        }
    }

    /// Reason why an unknown machine gets no answer, if any.
    fn silence_to_stranger(&self, request: &Request) -> Option<Silence> {
        match (self.gate, self.config.mode) {
            (Gate::Closed | Gate::ProxyOnly, _) => Some(Silence::Held),
            (Gate::Open, Mode::Pool) => None,
            (Gate::Open, Mode::Proxy) if self.config.enroll => None,
            _ => (!self.once_held(request)).then_some(Silence::Unknown),
        }
    }

    /// Returns true if the client requests an address that it once had from a pool of this server,
    /// even if the pool no longer exists.
    fn once_held(&self, request: &Request) -> bool {
        let row = asked_address(request).and_then(|address| self.table.at(address));
        request.kind != Kind::Discover && row.is_some_and(|row| row.mac == request.mac)
    }

    fn known_or_stranger(&self, known: Option<Reservation>, mac: MacAddr) -> Reservation {
        known.unwrap_or_else(|| {
            let netboot = if self.config.enroll { Netboot::Allowed } else { Netboot::NotAllowed };
            Reservation { netboot, ..Reservation::without_address(mac) }
        })
    }

    /// Returns an address of the client's network. The order is: the relay's statement (RFC 3527),
    /// the client's (RFC 3011), the relay's own address, the client's current one, the box's.
    fn link_of(&self, request: &Request) -> Ipv4Addr {
        let set = |address: Ipv4Addr| (!address.is_unspecified()).then_some(address);
        request
            .link_selection
            .or(request.subnet_selection)
            .or(set(request.giaddr))
            .or(set(request.ciaddr))
            .unwrap_or(self.config.server)
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

/// Destination of the answer to an INFORM: the address that the client states (RFC 2131 §4.3.5); a
/// client without one can be reached through its relay only.
fn inform_destination(request: &Request) -> Option<Destination> {
    if request.ciaddr.is_unspecified() {
        relay(request)
    } else {
        Some(Destination::Address(request.ciaddr))
    }
}

/// Destination of a NAK: a broadcast, since the client's address may be wrong (RFC 2131 §4.3.2).
fn refusal_destination(request: &Request) -> Destination {
    relay(request).unwrap_or(Destination::Broadcast)
}

fn send(message: Vec<u8>, to: Destination, promises: bool, seen: Seen) -> Vec<Output> {
    vec![Output::Send(Outgoing { message, to, promises, seen })]
}

#[cfg(test)]
mod tests;
