//! DHCPv4 service without sockets: a datagram goes in, messages and their destinations come out.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Instant;

use stdx::MacAddr;

use crate::config::{Config, Mode};
use crate::engine::checks::Checks;
use crate::engine::decide::requested_address;
use crate::engine::rate_limiter::{Pace, RateLimiter, Recent};
use crate::events::{DhcpEvent, DropReason, Observer};
use crate::leases::table::Table;
use crate::leases::{Change, Lease, LeaseClock, LeaseCounts};
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

/// Maximum reserved addresses remembered as checked.
const MAX_CHECKED: usize = 4096;

/// Output of the engine for its caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// Send a message to a client.
    Send(Outgoing),
    /// Check if a station uses this address, and pass the result to [`Engine::checked`].
    Check {
        /// Address to check; in the network of the link, or in a network behind a relay agent.
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
    pub needs_commit: bool,
    /// Event for the [`Observer`] after the message was sent.
    pub event: DhcpEvent,
}

/// Destination of an answer (RFC 2131 §4.1). The source is UDP port 67 unless stated otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Destination {
    /// The relay agent, port 67.
    Relay(Ipv4Addr),
    /// A client that already uses its address: an ordinary UDP datagram to port 68.
    Address(Ipv4Addr),
    /// A client that got `address` but cannot answer ARP for it yet: an Ethernet frame to `mac`,
    /// UDP port 68. iPXE's 2019 ROM needs this.
    Link {
        /// Destination of the Ethernet frame.
        mac: MacAddr,
        /// Destination of the datagram.
        address: Ipv4Addr,
    },
    /// All stations of the link (255.255.255.255), port 68.
    Broadcast,
    /// The PXE client that sent its request to port 4011, answered from port 4011. EDK2 listens at
    /// port 4011, iPXE at 68; both drop answers from another port than 4011.
    BootServer(SocketAddrV4),
}

/// Serving state of the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServeMode {
    /// Serve clients as configured.
    Open,
    /// Another DHCP server assigns addresses here. Only machines that are being installed get an
    /// answer, with boot files and no address, so that their installation can end.
    ProxyOnly,
    /// Answer no request, but report requests to the [`Observer`].
    Closed,
}

/// State of the DHCPv4 service: settings, leases of pool addresses, and rate limits.
///
/// The caller reads the waiting datagrams and passes each to [`Self::handle`] (or
/// [`Self::handle_boot_server`]). Then it commits [`Self::take_changes`], sends the messages, and
/// reports to the observer. So one commit serves a batch, and a power cut revokes no promised
/// lease.
#[derive(Debug)]
pub struct Engine {
    config: Config,
    serve_mode: ServeMode,
    rate_limiter: RateLimiter,
    clock: LeaseClock,
    table: Table,
    checks: Checks,
    checked: Recent<Ipv4Addr, ()>,
}

/// Lookup of machines, receiver of events, and time of one call.
#[derive(Clone, Copy)]
struct Context<'a> {
    directory: &'a dyn Directory,
    observer: &'a dyn Observer,
    now: Instant,
}

impl Context<'_> {
    fn ignored(&self, mac: MacAddr, reason: DropReason) -> Vec<Output> {
        self.observe(DhcpEvent::Ignored { mac, reason });
        Vec::new()
    }

    fn observe(&self, event: DhcpEvent) {
        self.observer.observe(event);
    }
}

impl Engine {
    /// Creates a service with the stored leases (empty without a store). `unix_secs` is the wall
    /// clock's time at `now`, which may be wrong: see [`LeaseClock`].
    pub fn new(config: Config, leases: &[Lease], unix_secs: u64, now: Instant) -> Self {
        Self {
            serve_mode: ServeMode::Open,
            rate_limiter: RateLimiter::new(now),
            clock: LeaseClock::new(unix_secs, leases, now),
            table: Table::new(&config, leases),
            checks: Checks::new(now),
            checked: Recent::new(MAX_CHECKED),
            config,
        }
    }

    /// Processes a datagram that arrived at port 67.
    ///
    /// # Errors
    /// The datagram is not a client's message. The error deserves a debug log line only.
    pub fn handle(
        &mut self,
        datagram: &[u8],
        directory: &dyn Directory,
        observer: &dyn Observer,
        now: Instant,
    ) -> Result<Vec<Output>, Malformed> {
        let request = Request::read(datagram)?;
        let ctx = Context { directory, observer, now };
        Ok(self.admit(&request, None, ctx))
    }

    /// Processes a datagram that arrived at port 4011, where a PXE client with an address from
    /// another server requests its boot file (PXE 2.1 §2.2.3).
    ///
    /// # Errors
    /// The datagram is not a client's message; as in [`Self::handle`], a debug log line is enough.
    pub fn handle_boot_server(
        &mut self,
        datagram: &[u8],
        from: SocketAddrV4,
        directory: &dyn Directory,
        observer: &dyn Observer,
        now: Instant,
    ) -> Result<Vec<Output>, Malformed> {
        let request = Request::read(datagram)?;
        let ctx = Context { directory, observer, now };
        Ok(self.admit(&request, Some(from), ctx))
    }

    /// Continues the request that waited for [`Output::Check`]. `holder` is the MAC of the station
    /// that uses the address; `None` if the address is free.
    pub fn checked(
        &mut self,
        address: Ipv4Addr,
        holder: Option<MacAddr>,
        directory: &dyn Directory,
        observer: &dyn Observer,
        now: Instant,
    ) -> Vec<Output> {
        self.conclude(address, holder, Context { directory, observer, now })
    }

    /// Returns the lease changes since the last call; the caller commits them in this order.
    pub fn take_changes(&mut self) -> Vec<Change> {
        self.table.take_changes()
    }

    /// Sets the serving state for all later requests.
    pub fn set_serve_mode(&mut self, serve_mode: ServeMode) {
        self.serve_mode = serve_mode;
    }

    /// Applies a new configuration. Leases stay. A lease outside of the new pools stays valid until
    /// its end, but its renewal is refused.
    pub fn reconfigure(&mut self, config: Config, now: Instant) {
        self.table.reconfigure(&config);
        self.config = config;
        self.sweep(now);
    }

    /// Removes expired entries; the caller should do this about once a minute.
    pub fn sweep(&mut self, now: Instant) {
        self.table.sweep(self.clock.at(now));
    }

    /// Iterates over all leases and offers, unordered. Times are seconds of [`Self::lease_time`].
    pub fn leases(&self) -> impl Iterator<Item = Lease> + '_ {
        self.table.leases()
    }

    /// Returns the number of bound leases at `now`, in total and in current pools, without offers.
    pub fn counts(&self, now: Instant) -> LeaseCounts {
        self.table.counts(self.clock.at(now))
    }

    /// Returns the current number of entries in each table.
    pub fn sizes(&self) -> Sizes {
        Sizes {
            leases: self.table.len(),
            checks: self.checks.len(),
            checked: self.checked.len(),
            machines: self.rate_limiter.machines.len(),
            unknown: self.rate_limiter.unknown.len(),
        }
    }

    /// Returns the time of the [`LeaseClock`] at `now`, in seconds.
    pub fn lease_time(&self, now: Instant) -> u64 {
        self.clock.at(now)
    }

    /// Looks up the machine that sent the request, and answers it if allowed.
    fn admit(
        &mut self,
        request: &Request,
        boot_server: Option<SocketAddrV4>,
        ctx: Context<'_>,
    ) -> Vec<Output> {
        let (mac, stage) = (request.mac, request.client.stage);
        let known = ctx.directory.by_mac(mac);
        if known.is_none() {
            let drop_reason = self.drop_reason_of_unknown(request);
            if self.rate_limiter.report_unknown(mac, ctx.now) {
                let (vendor_class, arch) =
                    (request.client.vendor_class.clone(), request.client.arch);
                ctx.observe(DhcpEvent::UnknownMac { mac, vendor_class, arch, drop_reason });
            }
            if drop_reason.is_some() {
                return Vec::new();
            }
        }
        match self.rate_limiter.pace(mac, ctx.now) {
            Pace::Fine => {}
            Pace::JustTooFast => return ctx.ignored(mac, DropReason::TooFast),
            Pace::StillTooFast => return Vec::new(),
        }
        match (request.kind, requested_address(request)) {
            (Kind::Discover, _) => ctx.observe(DhcpEvent::Discover { mac, stage }),
            (Kind::Request, Some(address)) => {
                ctx.observe(DhcpEvent::Requested { mac, address, stage });
            }
            _ => {}
        }
        match (&known, self.serve_mode) {
            (_, ServeMode::Closed) => return ctx.ignored(mac, DropReason::Held),
            (Some(machine), _) if machine.disable_dhcp => {
                return ctx.ignored(mac, DropReason::Disabled);
            }
            (Some(machine), ServeMode::ProxyOnly)
                if !machine.installing || machine.netboot == Netboot::NotAllowed =>
            {
                return ctx.ignored(mac, DropReason::Held);
            }
            _ => {}
        }
        match boot_server {
            Some(from) => self.boot_server(&self.record_or_default(known, mac), request, from, ctx),
            None => self.serve(known, request, ctx),
        }
    }

    fn serve(
        &mut self,
        known: Option<Reservation>,
        request: &Request,
        ctx: Context<'_>,
    ) -> Vec<Output> {
        let mac = request.mac;
        let mode =
            if self.serve_mode == ServeMode::ProxyOnly { Mode::Proxy } else { self.config.mode };
        let fixed = known.as_ref().and_then(|machine| Some((machine, machine.fixed?)));
        match (mode, fixed) {
            (Mode::Proxy, _) => self.proxy(&self.record_or_default(known, mac), request, ctx),
            (_, Some((machine, fixed))) => self.reserved(machine, fixed, request, ctx),
            (Mode::Reserved, None) if known.is_some() && !self.once_held(request) => {
                ctx.ignored(mac, DropReason::NoReservation)
            }
            _ => self.dynamic(known, request, ctx),
        }
    }

    /// Returns the reason why an unknown machine gets no answer; `None` if it gets one.
    fn drop_reason_of_unknown(&self, request: &Request) -> Option<DropReason> {
        match (self.serve_mode, self.config.mode) {
            (ServeMode::Closed | ServeMode::ProxyOnly, _) => Some(DropReason::Held),
            (ServeMode::Open, Mode::Pool) => None,
            (ServeMode::Open, Mode::Proxy) if self.config.enroll => None,
            _ => (!self.once_held(request)).then_some(DropReason::Unknown),
        }
    }

    /// Returns true if the client requests an address for which the lease table still has its
    /// lease, even if the pool was removed. Always false for a DISCOVER.
    fn once_held(&self, request: &Request) -> bool {
        let row = requested_address(request).and_then(|address| self.table.at(address));
        request.kind != Kind::Discover && row.is_some_and(|row| row.mac == request.mac)
    }

    fn record_or_default(&self, known: Option<Reservation>, mac: MacAddr) -> Reservation {
        known.unwrap_or_else(|| {
            let netboot = if self.config.enroll { Netboot::Allowed } else { Netboot::NotAllowed };
            Reservation { netboot, ..Reservation::without_address(mac) }
        })
    }

    /// Returns an address in the client's network, the first that is set: the relay's link
    /// selection (RFC 3527), the client's subnet selection (RFC 3011), the relay's own address, the
    /// client's current address, the box's address.
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

/// Returns the destination of the answer to an INFORM: the client's `ciaddr` (RFC 2131 §4.3.5), or
/// the relay if `ciaddr` is 0.0.0.0. `None`: neither is known.
fn inform_destination(request: &Request) -> Option<Destination> {
    if request.ciaddr.is_unspecified() {
        relay(request)
    } else {
        Some(Destination::Address(request.ciaddr))
    }
}

/// Returns the destination of a NAK: the relay, or a broadcast, as the client's address may be
/// wrong (RFC 2131 §4.3.2).
fn refusal_destination(request: &Request) -> Destination {
    relay(request).unwrap_or(Destination::Broadcast)
}

fn send(message: Vec<u8>, to: Destination, needs_commit: bool, event: DhcpEvent) -> Vec<Output> {
    vec![Output::Send(Outgoing { message, to, needs_commit, event })]
}

#[cfg(test)]
mod tests;
