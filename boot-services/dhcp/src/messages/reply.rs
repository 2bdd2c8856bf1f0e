//! Encoding of answers (RFC 2131 §2 and table 3).

use std::net::Ipv4Addr;

use crate::config::Config;
use crate::messages::boot::Boot;
use crate::messages::client::Stage;
use crate::messages::options::code;
use crate::messages::request::Request;
use crate::reservation::{DEFAULT_LEASE_SECS, FixedAddress, Reservation, Route};

/// Minimum bytes of a message: RFC 951's header and `vend`. Some BOOTP relays drop shorter ones.
const MIN_MESSAGE: usize = 300;
/// Datagram size that every host must accept: 576 bytes (RFC 2131 §2).
const MIN_DATAGRAM: usize = 576;
/// Maximum bytes of a datagram: one Ethernet frame. Some firmware claims to accept 65280 bytes, but
/// cannot reassemble fragments.
const MAX_DATAGRAM: usize = 1500;
/// Bytes of the IPv4 and UDP headers.
const HEADERS: usize = 28;
/// Offset of the options in a message, after header and magic cookie.
const OPTIONS_AT: usize = 240;
const NAME_AT: usize = 44;
const FILE_AT: usize = 108;
const FILE_LENGTH: usize = 128;
/// Maximum bytes in one part of an option's value (RFC 3396).
const MAX_PART: usize = 255;

/// Type of a server's message (option 53).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Offer = 2,
    Ack = 5,
    Nak = 6,
}

/// Content of an OFFER or ACK.
#[derive(Clone, Copy)]
pub(crate) struct Grant<'a> {
    pub config: &'a Config,
    pub machine: &'a Reservation,
    pub fixed: FixedAddress,
    pub request: &'a Request,
    pub boot: &'a Boot,
}

impl Grant<'_> {
    /// Encodes the message. `lease` is false for the answer to an INFORM, which has neither address
    /// nor lease time (RFC 2131 §4.3.5).
    pub fn message(self, answer: Answer, lease: bool) -> Vec<u8> {
        let Self { config, machine, fixed, request, boot } = self;
        let mut reply = Reply::new(request, answer, config.server);
        if answer == Answer::Ack {
            reply.bytes[12..16].copy_from_slice(&request.ciaddr.octets());
        }
        if lease {
            reply.bytes[16..20].copy_from_slice(&fixed.address.octets());
            reply.put(code::LEASE_TIME, &lease_secs(machine).to_be_bytes());
        }
        reply.put(code::SUBNET_MASK, &fixed.netmask.octets());
        if let Some(gateway) = machine.gateway {
            reply.put(code::ROUTERS, &gateway.octets());
        }
        // In this order the machine still boots when the message limit of a small client is
        // reached.
        reply.boot(boot, request);
        reply.settings(config, machine, fixed);
        reply.finish()
    }
}

/// Returns the lease time of a reservation in seconds; 0 means [`DEFAULT_LEASE_SECS`].
pub(crate) fn lease_secs(machine: &Reservation) -> u32 {
    if machine.lease_secs == 0 { DEFAULT_LEASE_SECS } else { machine.lease_secs }
}

/// Content of an OFFER or ACK with a boot file and no address.
#[derive(Clone, Copy)]
pub(crate) struct Proxy<'a> {
    pub config: &'a Config,
    pub request: &'a Request,
    pub boot: &'a Boot,
    /// True for an answer from the boot server's port 4011.
    pub boot_server: bool,
}

impl Proxy<'_> {
    /// Encodes the same message as Smee: server identifier, next server (`siaddr`, `sname`), class,
    /// machine identifier and boot file, nothing else.
    ///
    /// `siaddr` is always set: without it a BIOS iPXE of 2019 sends requests to port 4011 forever.
    pub fn message(self, answer: Answer) -> Vec<u8> {
        let Self { config, request, boot, .. } = self;
        let mut reply = Reply::new(request, answer, config.server);
        if answer == Answer::Ack {
            reply.bytes[12..16].copy_from_slice(&request.ciaddr.octets());
        }
        let name = config.server.to_string();
        reply.bytes[20..24].copy_from_slice(&config.server.octets());
        reply.bytes[NAME_AT..NAME_AT + name.len()].copy_from_slice(name.as_bytes());
        let class: &[u8] = match request.client.stage {
            Stage::HttpBoot => b"HTTPClient",
            _ => b"PXEClient",
        };
        reply.put(code::VENDOR_CLASS, class);
        match boot {
            Boot::Nothing | Boot::Exit => {}
            Boot::Http { url } => reply.file(url, request),
            Boot::Script { url } => {
                reply.file(url, request);
                reply.load_without_asking(request);
            }
            Boot::Tftp { file, .. } => {
                reply.file(file, request);
                if !self.is_asked_at_4011() {
                    reply.load_without_asking(request);
                }
            }
            Boot::Fixed { server, file } => {
                reply.fixed_boot(server.as_deref(), file.as_deref());
            }
        }
        if let Some(id) = request.client.machine_id {
            reply.put(code::MACHINE_ID, &id);
        }
        reply.finish()
    }

    /// Returns true if the message must not have a discovery control: for UEFI firmware, so that it
    /// sends a request to port 4011, and for the answer from port 4011. Many versions of EDK2 drop
    /// a proxy's offer with a discovery control: `PxeBcCacheDhcp4Offer` keeps only the second such
    /// offer. EDK2 treats an offer with only the class as a boot server's, and fetches its answer
    /// (UefiPxeBcDxe, `PxeBcRetryBinlOffer`).
    fn is_asked_at_4011(&self) -> bool {
        let client = &self.request.client;
        let bios = client.raspberry_pi || matches!(client.arch, Some(0..=5 | 20) | None);
        !bios || self.boot_server
    }
}

/// Returns a NAK with the reason as a sentence (RFC 2131 table 3, option 56).
pub(crate) fn nak(config: &Config, request: &Request, sentence: &str) -> Vec<u8> {
    let mut reply = Reply::new(request, Answer::Nak, config.server);
    if request.giaddr != Ipv4Addr::UNSPECIFIED {
        // The client may have a wrong address: the relay must broadcast (RFC 2131 §4.3.2).
        reply.bytes[10] |= 0x80;
    }
    reply.put(code::MESSAGE, sentence.as_bytes());
    reply.finish()
}

struct Reply {
    bytes: Vec<u8>,
    /// Maximum bytes of the message without its trailer.
    limit: usize,
    /// Options at the end of the message: option 82 must be the last (RFC 3046 §2.2).
    trailer: Vec<u8>,
}

impl Reply {
    fn new(request: &Request, answer: Answer, server: Ipv4Addr) -> Self {
        let mut bytes = vec![0; OPTIONS_AT];
        bytes[0] = 2;
        bytes[1] = 1;
        bytes[2] = 6;
        bytes[4..8].copy_from_slice(&request.xid);
        bytes[10..12].copy_from_slice(&request.flags.to_be_bytes());
        bytes[24..28].copy_from_slice(&request.giaddr.octets());
        bytes[28..34].copy_from_slice(&request.mac.0);
        bytes[236..240].copy_from_slice(&[99, 130, 83, 99]);
        let mut trailer = Vec::new();
        let subnet = request.subnet_selection.map(|address| address.octets().to_vec());
        for (code, value) in [
            (code::SUBNET_SELECTION, &subnet),
            (code::CLIENT_ID, &request.client_id),
            (code::RELAY_AGENT, &request.relay_agent),
        ] {
            if let Some(value) = value {
                append(&mut trailer, code, value);
            }
        }
        trailer.push(code::END);
        let taken = request.max_size.map_or(MIN_DATAGRAM, usize::from);
        let limit = taken.clamp(MIN_DATAGRAM, MAX_DATAGRAM) - HEADERS;
        let mut reply = Self { bytes, limit: limit.saturating_sub(trailer.len()), trailer };
        reply.put(code::MESSAGE_TYPE, &[answer as u8]);
        reply.put(code::SERVER_ID, &server.octets());
        reply
    }

    /// Adds an option, in parts if it is long. Omits the option, with a warning, if the client's
    /// maximum message size would be exceeded.
    fn put(&mut self, code: u8, value: &[u8]) {
        let parts = value.len().div_ceil(MAX_PART).max(1);
        if self.bytes.len() + value.len() + 2 * parts > self.limit {
            tracing::warn!(option = code, length = value.len(), "a DHCP option does not fit");
            return;
        }
        append(&mut self.bytes, code, value);
    }

    fn put_addresses(&mut self, code: u8, addresses: &[Ipv4Addr]) {
        if !addresses.is_empty() {
            let value: Vec<u8> = addresses.iter().flat_map(Ipv4Addr::octets).collect();
            self.put(code, &value);
        }
    }

    fn put_text(&mut self, code: u8, text: Option<&str>) {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            self.put(code, text.as_bytes());
        }
    }

    /// Adds the name of a file or server, with a terminating zero byte.
    ///
    /// Some boot ROMs read options 66 and 67 as C strings, and without a zero they read on into the
    /// next option. Every client must accept the zero (RFC 2132 §2).
    fn put_name(&mut self, code: u8, name: &str) {
        self.put(code, &[name.as_bytes(), b"\0"].concat());
    }

    fn boot(&mut self, boot: &Boot, request: &Request) {
        match boot {
            Boot::Nothing => {}
            Boot::Fixed { server, file } => self.fixed_boot(server.as_deref(), file.as_deref()),
            Boot::Exit => self.no_proxy_wait(),
            Boot::Script { url } => {
                self.file(url, request);
                self.no_proxy_wait();
            }
            Boot::Tftp { server, file } => {
                self.bytes[20..24].copy_from_slice(&server.octets());
                self.file(file, request);
                self.put(code::VENDOR_CLASS, b"PXEClient");
                self.load_without_asking(request);
                if request.wants(code::TFTP_SERVER) {
                    self.put_name(code::TFTP_SERVER, &server.to_string());
                }
                if request.wants(code::TFTP_ADDRESSES) {
                    self.put(code::TFTP_ADDRESSES, &server.octets());
                }
            }
            Boot::Http { url } => {
                // UEFI HTTP Boot ignores an offer that does not name its own class.
                self.put(code::VENDOR_CLASS, b"HTTPClient");
                self.file(url, request);
            }
        }
        if let (Stage::Pxe | Stage::HttpBoot, Some(id)) =
            (request.client.stage, request.client.machine_id)
        {
            self.put(code::MACHINE_ID, &id);
        }
    }

    /// Sets options 66 and 67, `file` and `siaddr` to the values of the machine's record.
    fn fixed_boot(&mut self, server: Option<&str>, file: Option<&str>) {
        if let Some(server) = server.filter(|name| !name.is_empty()) {
            self.put_name(code::TFTP_SERVER, server);
        }
        if let Some(file) = file.filter(|name| !name.is_empty()) {
            self.put_name(code::BOOT_FILE, file);
        }
        self.header_file(file.unwrap_or_default());
        if let Some(Ok(address)) = server.map(str::parse::<Ipv4Addr>) {
            self.bytes[20..24].copy_from_slice(&address.octets());
        }
    }

    /// Adds PXE's discovery control (PXE 2.1 table 2-1) with bit 3: load the file, contact no boot
    /// server. A Raspberry Pi's ROM continues only if the option also has a menu with this name (as
    /// in Smee).
    fn load_without_asking(&mut self, request: &Request) {
        const CONTROL: &[u8] = &[6, 1, 8];
        const MENU: &[u8] = b"\x09\x14\0\0\x11Raspberry Pi Boot\x0a\x04\0PXE";
        let menu = if request.client.raspberry_pi { MENU } else { &[] };
        self.put(code::VENDOR_SPECIFIC, &[CONTROL, menu, &[code::END]].concat());
    }

    /// Adds the file name to the header's `file`, and as option 67 for clients that request it.
    ///
    /// A BIOS PXE ROM gets the name in the header only, unless the name is too long.
    fn file(&mut self, file: &str, request: &Request) {
        let in_header = self.header_file(file);
        let bios =
            request.client.stage == Stage::Pxe && matches!(request.client.arch, Some(0) | None);
        if !in_header || (request.wants(code::BOOT_FILE) && !bios) {
            self.put_name(code::BOOT_FILE, file);
        }
    }

    /// Writes a name into the header; returns false if name and zero byte do not fit.
    fn header_file(&mut self, file: &str) -> bool {
        let fits = file.len() < FILE_LENGTH;
        if fits {
            self.bytes[FILE_AT..FILE_AT + file.len()].copy_from_slice(file.as_bytes());
        }
        fits
    }

    /// Adds iPXE's `no-pxedhcp` (175.176): without it iPXE waits 3 s for a ProxyDHCP answer.
    fn no_proxy_wait(&mut self) {
        self.put(code::IPXE, &[176, 1, 1]);
    }

    fn settings(&mut self, config: &Config, machine: &Reservation, fixed: FixedAddress) {
        self.put_addresses(code::NAME_SERVERS, &machine.name_servers);
        self.put_text(code::HOST_NAME, machine.hostname.as_deref());
        self.put_text(code::DOMAIN_NAME, machine.domain_name.as_deref());
        let broadcast = fixed.address | !fixed.netmask;
        self.put(code::BROADCAST, &broadcast.octets());
        if let Some(routes) = classless_routes(&machine.classless_static_routes) {
            self.put(code::CLASSLESS_ROUTES, &routes);
        }
        self.put_addresses(code::NTP_SERVERS, &machine.time_servers);
        if let Some(syslog) = config.syslog {
            self.put(code::LOG_SERVERS, &syslog.octets());
        }
        if let Some(search) = machine.domain_name.as_deref().and_then(search_list) {
            self.put(code::DOMAIN_SEARCH, &search);
        }
    }

    fn finish(mut self) -> Vec<u8> {
        self.bytes.append(&mut self.trailer);
        if self.bytes.len() < MIN_MESSAGE {
            self.bytes.resize(MIN_MESSAGE, code::PAD);
        }
        self.bytes
    }
}

fn append(bytes: &mut Vec<u8>, code: u8, value: &[u8]) {
    let mut parts = value.chunks(MAX_PART);
    let first = parts.next().unwrap_or_default();
    for part in std::iter::once(first).chain(parts) {
        bytes.push(code);
        bytes.push(u8::try_from(part.len()).expect("a part has at most 255 bytes"));
        bytes.extend_from_slice(part);
    }
}

/// Encodes option 121 (RFC 3442): for each route its width, significant octets and router. `None`
/// if there are no routes.
fn classless_routes(routes: &[Route]) -> Option<Vec<u8>> {
    let mut value = Vec::new();
    for route in routes {
        let width = route.destination.length();
        value.push(width);
        value.extend(&route.destination.address().octets()[..usize::from(width).div_ceil(8)]);
        value.extend(route.router.octets());
    }
    (!value.is_empty()).then_some(value)
}

/// Encodes a search list (RFC 3397) of one name in RFC 1035's form; `None` if not valid.
fn search_list(domain: &str) -> Option<Vec<u8>> {
    let mut value = Vec::new();
    for label in domain.trim_end_matches('.').split('.') {
        let length = u8::try_from(label.len()).ok().filter(|length| (1..=63).contains(length))?;
        value.push(length);
        value.extend_from_slice(label.as_bytes());
    }
    value.push(0);
    (value.len() <= 255).then_some(value)
}

#[cfg(test)]
mod tests;
