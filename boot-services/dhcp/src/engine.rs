//! The service without its sockets: a datagram in, messages and their places out.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Instant;

use stdx::MacAddr;

use crate::checks::Checks;
use crate::config::{Config, Mode};
use crate::decide::asked_address;
use crate::guard::{Guard, Pace, Recent};
use crate::lease::{Bound, Change, Lease, LeaseClock};
use crate::request::{Kind, Malformed, Request};
use crate::reservation::{Directory, Netboot, Reservation};
use crate::seen::{Observer, Seen, Silence};
use crate::table::Table;

mod dynamic;
mod proxy;
mod reserved;
mod sizes;

pub use sizes::Sizes;

/// Reserved addresses remembered as checked.
const MAX_CHECKED: usize = 4096;

/// What the engine asks of its edge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// Send this message.
    Send(Outgoing),
    /// Find out who uses this address, and tell [`Engine::checked`].
    Check {
        /// The address, of the link itself or of one behind a relay.
        address: Ipv4Addr,
    },
}

/// A DHCP message to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing {
    /// The UDP payload.
    pub message: Vec<u8>,
    /// Where to.
    pub to: Destination,
    /// It promises a lease: it may be sent only when every change taken from the engine so far is
    /// committed, and must be dropped when that fails.
    pub promises: bool,
    /// What the [`Observer`] is to be told when it has been sent.
    pub seen: Seen,
}

/// Where an answer goes (RFC 2131 §4.1), from UDP port 67 where nothing else is said.
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
    /// The PXE client that asked at port 4011, from that port: EDK2 listens at its own 4011, iPXE
    /// at 68, and both drop what comes from another port than 4011.
    BootServer(SocketAddrV4),
}

/// Whether the network is known to be ours to serve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    /// Serve, as the configuration says.
    Open,
    /// Another server gives addresses here: name boot files to machines that are being installed,
    /// so that they come to their end, and do nothing else.
    ProxyOnly,
    /// Answer nothing, and tell what was asked.
    Closed,
}

/// The service's state: its settings, its leases of pool addresses, and its limits.
///
/// The edge reads what has arrived, gives each datagram to [`Self::handle`] (or
/// [`Self::handle_boot_server`]), commits [`Self::take_changes`], then sends, and then tells the
/// observer what it has sent. So one commit serves a whole batch, and nobody is promised, or hears
/// of, a lease that a power cut could take back.
#[derive(Debug)]
pub struct Engine {
    config: Config,
    gate: Gate,
    guard: Guard,
    clock: LeaseClock,
    table: Table,
    checks: Checks,
    checked: Recent<Ipv4Addr, ()>,
}

/// What one turn may use.
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
    /// A service that goes on with these leases (none: [`Vec::new`]) and has heard nobody yet.
    ///
    /// `unix_secs` is the wall clock's time `now`, which may be wrong: see [`LeaseClock`].
    pub fn new(config: Config, leases: &[Lease], unix_secs: u64, now: Instant) -> Self {
        Self {
            gate: Gate::Open,
            guard: Guard::new(now),
            clock: LeaseClock::new(unix_secs, leases, now),
            table: Table::new(&config, leases),
            checks: Checks::new(now),
            checked: Recent::new(MAX_CHECKED),
            config,
        }
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
    ) -> Result<Vec<Output>, Malformed> {
        let request = Request::read(datagram)?;
        let world = World { directory, observer, now };
        Ok(self.admit(&request, None, world))
    }

    /// Takes one datagram that arrived at port 4011, where a PXE client asks for its boot file when
    /// it has an address from elsewhere (PXE 2.1 §2.2.3).
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

    /// Goes on after [`Output::Check`]: `holder` is who answers for the address, if anybody does.
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

    /// What happened to leases since the last call, to be committed in this order.
    pub fn take_changes(&mut self) -> Vec<Change> {
        self.table.take_changes()
    }

    /// Opens or closes the service; what is asked from now on is answered accordingly.
    pub fn set_gate(&mut self, gate: Gate) {
        self.gate = gate;
    }

    /// Goes on with other settings. Leases stay as they are; one that is outside of the new pools
    /// counts until it ends, and its renewal is refused.
    pub fn reconfigure(&mut self, config: Config, now: Instant) {
        self.table.reconfigure(&config);
        self.config = config;
        self.sweep(now);
    }

    /// Forgets what is over; once a minute is often enough.
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

    /// How much is remembered.
    pub fn sizes(&self) -> Sizes {
        let (machines, strangers) = self.guard.sizes();
        Sizes {
            leases: self.table.len(),
            checks: self.checks.len(),
            checked: self.checked.len(),
            machines,
            strangers,
        }
    }

    /// The time by which leases are counted.
    pub fn lease_time(&self, now: Instant) -> u64 {
        self.clock.at(now)
    }

    /// Says who asks, and answers those who may be.
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

    /// Why a machine that nobody registered gets no answer, if it gets none.
    fn silence_to_stranger(&self, request: &Request) -> Option<Silence> {
        match (self.gate, self.config.mode) {
            (Gate::Closed | Gate::ProxyOnly, _) => Some(Silence::Held),
            (Gate::Open, Mode::Pool) => None,
            (Gate::Open, Mode::Proxy) if self.config.enroll => None,
            _ => (!self.once_held(request)).then_some(Silence::Unknown),
        }
    }

    /// The client means an address that it had from a pool of ours, which there may be no more.
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

    /// An address of the network the client is in: as its relay says (RFC 3527), as it says itself
    /// (RFC 3011), its relay's own, the one it uses already, else the box's.
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

/// The answer to an INFORM goes to the address the client says it has (RFC 2131 §4.3.5); one that
/// names none can only be reached through its relay.
fn inform_destination(request: &Request) -> Option<Destination> {
    if request.ciaddr.is_unspecified() {
        relay(request)
    } else {
        Some(Destination::Address(request.ciaddr))
    }
}

/// A refusal goes to everybody, for the client's address may be wrong (RFC 2131 §4.3.2).
fn refusal_destination(request: &Request) -> Destination {
    relay(request).unwrap_or(Destination::Broadcast)
}

fn send(message: Vec<u8>, to: Destination, promises: bool, seen: Seen) -> Vec<Output> {
    vec![Output::Send(Outgoing { message, to, promises, seen })]
}

#[cfg(test)]
mod tests;
