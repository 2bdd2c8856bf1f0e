//! DHCPv6 service without the socket: a datagram goes in, at most one answer comes out.

use std::collections::HashMap;
use std::net::Ipv6Addr;
use std::time::{Duration, Instant};

use stdx::MacAddr;

use super::client::{Client, Identity, identities};
use super::message::{Kind, Malformed, Message, Options, code, put};
use super::{Config, Directory, Event, Observer, Reservation};
use crate::engine::bootfile::{NOT_ALLOWED_FILE, loader_of};
use crate::engine::rate_limiter::{Pace, RateLimiter};
use crate::messages::client::Stage;
use crate::reservation::{DEFAULT_LEASE_SECS, Netboot};

const ADVERTISE: u8 = 2;
const REPLY: u8 = 7;
/// Status code Success (RFC 8415 §21.13).
const SUCCESS: u16 = 0;
const NO_ADDRESSES: u16 = 2;
const NOT_ON_LINK: u16 = 4;
const NO_PREFIX: u16 = 6;
/// Preference value 255, which ends the client's wait for other offers (RFC 8415 §18.2.1).
const PREFERENCE_MAX: u8 = 255;
/// Maximum identity associations in one answer; firmware and systems send one or two.
const IAS_MAX: usize = 8;
/// Limit of name servers in an answer.
const NAME_SERVERS_MAX: usize = 8;
/// Time for which a declined address is not offered (RFC 8415 §18.3.8).
const DECLINED_FOR: Duration = Duration::from_secs(3600);
/// Maximum declined addresses that are remembered; above this number, the oldest is removed.
const DECLINED_MAX: usize = 1024;
/// Longest loader name in a URL, so that an answer fits in one frame.
const FILE_MAX: usize = 255;

/// State of the DHCPv6 service: settings, limits, declined addresses. All leases are reservations.
#[derive(Debug)]
pub struct Engine {
    config: Config,
    /// Server identifier: a DUID-LL (RFC 8415 §11.4).
    duid: Vec<u8>,
    rate_limiter: RateLimiter,
    /// Declined addresses, each with the time from which it may be offered again.
    declined: HashMap<Ipv6Addr, Instant>,
}

impl Engine {
    /// Creates a service; `mac` is the MAC address of its interface.
    pub fn new(config: Config, mac: MacAddr, now: Instant) -> Self {
        let duid = [&[0, 3, 0, 1][..], &mac.0].concat();
        Self { config, duid, rate_limiter: RateLimiter::new(now), declined: HashMap::new() }
    }

    /// Processes a datagram that arrived at port 547. Returns the answer to the sender, if any.
    ///
    /// # Errors
    /// The datagram is not a client's message. The error deserves a debug log line only.
    pub fn handle(
        &mut self,
        datagram: &[u8],
        from: Ipv6Addr,
        directory: &dyn Directory,
        observer: &dyn Observer,
        now: Instant,
    ) -> Result<Option<Vec<u8>>, Malformed> {
        let message = Message::read(datagram)?;
        if !self.is_for_us(&message) {
            return Ok(None);
        }
        let known = identities(&message, from).find_map(|identity| directory.find(identity));
        let Some(machine) = known else {
            let mac = identities(&message, from).find_map(|identity| match identity {
                Identity::Mac(mac) => Some(mac),
                Identity::Uuid(_) => None,
            });
            if let Some(mac) = mac.filter(|mac| self.rate_limiter.report_unknown(*mac, now)) {
                observer.observe(Event::Unknown { mac });
            }
            return Ok(None);
        };
        if self.rate_limiter.pace(machine.mac, now) != Pace::Fine {
            return Ok(None);
        }
        self.declined.retain(|_, until| *until > now);
        if message.kind == Kind::Decline {
            self.decline(&message, &machine, now);
        }
        let answer = self.answer(&message, &machine, observer);
        Ok(answer.map(|answer| message.wrap(answer)))
    }

    /// Marks the machine's reserved address as declined, if the message names it.
    fn decline(&mut self, message: &Message<'_>, machine: &Reservation, now: Instant) {
        let mut named = message.options.all(code::IA_NA).flat_map(addresses);
        if !named.any(|address| address == machine.address) {
            return;
        }
        if self.declined.len() >= DECLINED_MAX {
            let first = self.declined.iter().min_by_key(|(_, until)| **until);
            if let Some(address) = first.map(|(address, _)| *address) {
                self.declined.remove(&address);
            }
        }
        self.declined.insert(machine.address, now + DECLINED_FOR);
    }

    /// Returns true if the server identifier permits an answer (RFC 8415 §16): some messages must
    /// have this server's identifier, others must have none.
    fn is_for_us(&self, message: &Message<'_>) -> bool {
        match message.kind {
            Kind::Solicit | Kind::Confirm | Kind::Rebind => message.server_id.is_none(),
            Kind::Request | Kind::Renew | Kind::Release | Kind::Decline => {
                message.server_id == Some(&self.duid)
            }
            Kind::Information => message.server_id.is_none_or(|id| id == self.duid),
        }
    }

    fn answer(
        &self,
        message: &Message<'_>,
        machine: &Reservation,
        observer: &dyn Observer,
    ) -> Option<Vec<u8>> {
        let client = Client::read(message.options);
        let (mac, stage) = (machine.mac, client.stage);
        let rapid = message.options.get(code::RAPID_COMMIT).is_some();
        let offer = message.kind == Kind::Solicit && !rapid;
        let mut answer = vec![if offer { ADVERTISE } else { REPLY }];
        answer.extend(message.xid);
        if let Some(duid) = message.client_id {
            put(&mut answer, code::CLIENT_ID, duid);
        }
        put(&mut answer, code::SERVER_ID, &self.duid);
        match message.kind {
            Kind::Release | Kind::Decline => {
                put(&mut answer, code::STATUS, &status(SUCCESS));
                observer.observe(Event::Ended { mac, declined: message.kind == Kind::Decline });
                return Some(answer);
            }
            Kind::Confirm => {
                let verdict =
                    if on_link(message.options, machine)? { SUCCESS } else { NOT_ON_LINK };
                put(&mut answer, code::STATUS, &status(verdict));
                return Some(answer);
            }
            Kind::Solicit if rapid => put(&mut answer, code::RAPID_COMMIT, &[]),
            Kind::Solicit => put(&mut answer, code::PREFERENCE, &[PREFERENCE_MAX]),
            Kind::Request | Kind::Renew | Kind::Rebind | Kind::Information => {}
        }
        if message.kind != Kind::Information {
            let is_free = !self.declined.contains_key(&machine.address);
            associations(&mut answer, message.options, machine, is_free);
        }
        let url = self.settings(&mut answer, message.options, machine, &client);
        observer.observe(match offer {
            true => Event::Offered { mac, stage },
            false => Event::Replied { mac, stage, url },
        });
        Some(answer)
    }

    /// Adds all settings except addresses to the answer; returns the URL of the boot file, if any.
    fn settings(
        &self,
        answer: &mut Vec<u8>,
        options: Options<'_>,
        machine: &Reservation,
        client: &Client,
    ) -> Option<String> {
        let requested = options.get(code::REQUESTED).unwrap_or_default();
        let wants = |code: u16| requested.chunks_exact(2).any(|pair| pair == code.to_be_bytes());
        if wants(code::NAME_SERVERS) && !machine.name_servers.is_empty() {
            let servers = machine.name_servers.iter().take(NAME_SERVERS_MAX);
            let servers: Vec<u8> = servers.flat_map(Ipv6Addr::octets).collect();
            put(answer, code::NAME_SERVERS, &servers);
        }
        // EDK2's HTTP client accepts a URL only in an offer of this class. EDK2's PXE client must
        // not get the class: it would then send a request to port 4011, as for a BINL server.
        if client.stage == Stage::HttpBoot {
            let class = b"HTTPClient";
            let value = [&client.enterprise[..], &[0, 10], class].concat();
            put(answer, code::VENDOR_CLASS, &value);
        }
        let url = self.url(machine, client)?;
        // The URL is last. EDK2 reads it up to the first zero byte, and the bytes after the message
        // are zero.
        put(answer, code::BOOT_FILE_URL, url.as_bytes());
        Some(url)
    }

    /// Returns the URL of the boot file, by the same rules as for IPv4.
    fn url(&self, machine: &Reservation, client: &Client) -> Option<String> {
        let Config { server, http_port, .. } = self.config;
        let mac = machine.mac;
        let http = format!("http://[{server}]:{http_port}/ipxe");
        let allowed = machine.netboot == Netboot::Allowed;
        match client.stage {
            Stage::System => None,
            Stage::Ipxe => allowed.then(|| format!("{http}/script/{mac}/auto.ipxe")),
            Stage::Pxe => Some(format!("tftp://[{server}]/{}", self.file(machine, client))),
            Stage::HttpBoot => Some(format!("{http}/binary/{mac}/{}", self.file(machine, client))),
        }
    }

    /// Returns the loader file. A machine that may not netboot, or has no loader, gets the name of
    /// a missing file, so that its firmware continues soonest.
    fn file(&self, machine: &Reservation, client: &Client) -> String {
        if machine.netboot != Netboot::Allowed {
            return NOT_ALLOWED_FILE.trim_start_matches('/').to_owned();
        }
        let own = machine.ipxe_binary.clone().filter(|file| file.len() <= FILE_MAX);
        own.unwrap_or_else(|| loader_of(&self.config.binaries, client.arch))
    }
}

/// Answers each identity association. The first gets the reserved address if free; others get none.
fn associations(answer: &mut Vec<u8>, options: Options<'_>, machine: &Reservation, is_free: bool) {
    let lease = match machine.lease_secs {
        0 => DEFAULT_LEASE_SECS,
        secs => secs,
    };
    let mut given = false;
    let is_association = |kind| matches!(kind, code::IA_NA | code::IA_TA | code::IA_PD);
    for (kind, value) in options.iter().filter(|(kind, _)| is_association(*kind)).take(IAS_MAX) {
        let Some(id) = value.first_chunk::<4>() else { continue };
        let mut body = id.to_vec();
        match kind {
            code::IA_NA if !given && is_free => {
                given = true;
                // T1 and T2 (RFC 8415 §21.4): half, and four fifths.
                body.extend((lease / 2).to_be_bytes());
                body.extend((lease - lease / 5).to_be_bytes());
                put(&mut body, code::IA_ADDRESS, &lifetime(machine.address, lease));
                // An address of an earlier lease is withdrawn (RFC 8415 §18.3.4).
                for address in addresses(value).filter(|address| *address != machine.address) {
                    put(&mut body, code::IA_ADDRESS, &lifetime(address, 0));
                }
            }
            code::IA_TA => put(&mut body, code::STATUS, &status(NO_ADDRESSES)),
            other => {
                body.extend([0; 8]);
                let verdict = if other == code::IA_PD { NO_PREFIX } else { NO_ADDRESSES };
                put(&mut body, code::STATUS, &status(verdict));
            }
        }
        put(answer, kind, &body);
    }
}

/// Returns the client's addresses in an IA_NA, at most [`IAS_MAX`].
fn addresses(association: &[u8]) -> impl Iterator<Item = Ipv6Addr> {
    let options = association.get(12..).and_then(|options| Options::read(options).ok());
    let values = options.into_iter().flat_map(|options| options.all(code::IA_ADDRESS));
    let octets = values.filter_map(|value| value.first_chunk::<16>().copied());
    octets.map(Ipv6Addr::from).take(IAS_MAX)
}

/// Returns true if all addresses of a CONFIRM are in the machine's /64. `None` if the message has
/// no address and must not be answered (RFC 8415 §18.3.3).
fn on_link(options: Options<'_>, machine: &Reservation) -> Option<bool> {
    let network = |address: Ipv6Addr| address.to_bits() >> 64;
    let mut named = options.all(code::IA_NA).flat_map(addresses).peekable();
    named.peek()?;
    Some(named.all(|address| network(address) == network(machine.address)))
}

/// Encodes an address with its preferred and valid lifetimes (RFC 8415 §21.6).
fn lifetime(address: Ipv6Addr, secs: u32) -> Vec<u8> {
    [&address.octets()[..], &secs.to_be_bytes(), &secs.to_be_bytes()].concat()
}

/// Returns a status code without a message text.
fn status(code: u16) -> [u8; 2] {
    code.to_be_bytes()
}

#[cfg(test)]
mod tests;
