//! The box's own DHCP service in a separate process, and the baseline: the minimum work of any
//! server.

use std::collections::{HashMap, HashSet};
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use dhcp::{
    Config, DhcpEvent, Directory, FixedAddress, LeaseFile, Mode, Netboot, Observer, Prefix, Range,
    Reservation, ServeMode, Service, Subnet,
};
use dhcproto::Encodable as _;
use dhcproto::v4::{DhcpOption, Message, MessageType, OptionCode, borrowed};
use stdx::MacAddr;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::machines::{self, DOMAIN, LEASE_SECS, NAME_SERVER, NETMASK, NETWORK, POOL, TIME_SERVER};
use super::wire::{INTERFACE, PREFIX_LENGTH, RELAY, SERVER};

/// Size of the socket's receive buffer in bytes, as in the box.
const RECEIVE_BUFFER: usize = 4 << 20;
const PORT: u16 = 67;
/// Transaction ID (`xid`) of the only exchange.
const EXCHANGE: u32 = 0x626f_6f74;
/// Interval between two messages of [`first_ack`].
const ASK_AGAIN: Duration = Duration::from_millis(5);
/// Timeout for the first answer of a server.
const FIRST_ACK_LIMIT: Duration = Duration::from_secs(60);

struct Known {
    machines: HashMap<MacAddr, Ipv4Addr>,
    addresses: HashSet<Ipv4Addr>,
}

impl Directory for Known {
    fn by_mac(&self, mac: MacAddr) -> Option<Reservation> {
        let address = *self.machines.get(&mac)?;
        let fixed = FixedAddress { address, netmask: NETMASK };
        Some(Reservation {
            fixed: Some(fixed),
            gateway: Some(SERVER),
            name_servers: vec![NAME_SERVER],
            time_servers: vec![TIME_SERVER],
            domain_name: Some(DOMAIN.to_owned()),
            lease_secs: LEASE_SECS,
            netboot: Netboot::Allowed,
            ..Reservation::without_address(mac)
        })
    }

    fn is_reserved(&self, address: Ipv4Addr) -> bool {
        self.addresses.contains(&address)
    }
}

struct Nobody;

impl Observer for Nobody {
    fn observe(&self, _: DhcpEvent) {}
}

/// Serves the reservations of a folder, and a pool with its leases in that folder, until killed.
///
/// # Errors
/// The service ends.
pub fn run(folder: &Path) -> Result<()> {
    let machines: HashMap<_, _> = machines::read(folder)?.into_iter().collect();
    let addresses = machines.values().copied().collect();
    let prefix = Prefix::new(NETWORK, PREFIX_LENGTH).context("the network is none")?;
    let subnet = Subnet {
        ranges: vec![Range { first: POOL.0, last: POOL.1 }],
        gateway: Some(SERVER),
        name_servers: vec![NAME_SERVER],
        time_servers: vec![TIME_SERVER],
        domain_name: Some(DOMAIN.to_owned()),
        lease_secs: LEASE_SECS,
        ..Subnet::new(prefix)
    };
    let (mode, subnets) = (Mode::Pool, vec![subnet]);
    let config = Config { mode, subnets, ..Config::new(INTERFACE, SERVER) };
    let (_config, config) = watch::channel(config);
    let (_gate, serve_mode) = watch::channel(ServeMode::Open);
    let service = Service {
        config,
        serve_mode,
        directory: Arc::new(Known { machines, addresses }),
        observer: Arc::new(Nobody),
        leases: Some(Arc::new(LeaseFile::open(&folder.join("leases"))?)),
        checker: None,
        counts: watch::Sender::new(dhcp::LeaseCounts::default()),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    // On the runtime's worker threads, as in the supervisor.
    Ok(runtime.block_on(async { tokio::spawn(service.run(CancellationToken::new())).await })??)
}

/// Answers every message at once without state: the address is computed from the MAC address.
///
/// # Errors
/// The socket fails.
pub fn reflect() -> Result<()> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, PORT))?;
    rustix::net::sockopt::set_socket_recv_buffer_size_force(&socket, RECEIVE_BUFFER)?;
    let mut buffer = [0; 1500];
    loop {
        let (length, from) = socket.recv_from(&mut buffer)?;
        let Some(kind) = kind(&buffer[..length]) else { continue };
        let [.., second, third] = [buffer[32], buffer[33]];
        let mut reply = buffer[..240].to_vec();
        reply[0] = 2;
        reply[16..20].copy_from_slice(&[10, 89, second, third]);
        let answer = if kind == MessageType::Discover { 2 } else { 5 };
        reply.extend([53, 1, answer, 54, 4]);
        reply.extend(SERVER.octets());
        reply.extend([51, 4]);
        reply.extend(LEASE_SECS.to_be_bytes());
        for (code, value) in [(1, NETMASK), (3, SERVER), (6, NAME_SERVER), (42, TIME_SERVER)] {
            reply.extend([code, 4]);
            reply.extend(value.octets());
        }
        reply.push(255);
        reply.resize(reply.len().max(300), 0);
        socket.send_to(&reply, from)?;
    }
}

/// DHCP message type (option 53).
fn kind(message: &[u8]) -> Option<MessageType> {
    let message = borrowed::Message::new(message).ok()?;
    let kind = message.opts().find(|option| option.code() == OptionCode::MessageType)?;
    kind.data().first().copied().map(MessageType::from)
}

/// Repeats the exchange of the first machine until the machine has an address; runs in the
/// namespace of the clients.
///
/// # Errors
/// The socket fails, or no server answers in time.
pub fn first_ack() -> Result<()> {
    let begun = Instant::now();
    let socket = UdpSocket::bind((RELAY, PORT))?;
    socket.set_read_timeout(Some(ASK_AGAIN))?;
    let server = SocketAddrV4::new(SERVER, PORT);
    let (mac, _) = machines::reserved(0);
    let none = Ipv4Addr::UNSPECIFIED;
    let mut message = Message::new_with_id(EXCHANGE, none, none, none, RELAY, &mac.0);
    message.set_hops(1).opts_mut().insert(DhcpOption::MessageType(MessageType::Discover));
    let mut buffer = [0; 1500];
    while begun.elapsed() < FIRST_ACK_LIMIT {
        // The server may not listen yet.
        let _ = socket.send_to(&message.to_vec()?, server);
        let Ok((length, _)) = socket.recv_from(&mut buffer) else { continue };
        match kind(&buffer[..length]) {
            Some(MessageType::Offer) => {
                let offered = borrowed::Message::new(&buffer[..length])?.yiaddr();
                let options = message.opts_mut();
                options.insert(DhcpOption::MessageType(MessageType::Request));
                options.insert(DhcpOption::RequestedIpAddress(offered));
                options.insert(DhcpOption::ServerIdentifier(SERVER));
            }
            Some(MessageType::Ack) => return Ok(()),
            _ => {}
        }
    }
    bail!("no server answered for {} s", FIRST_ACK_LIMIT.as_secs())
}

#[cfg(test)]
mod tests {
    use super::{MessageType, kind};

    #[test]
    fn finds_the_kind_of_a_message() {
        let message = |options: &[u8]| [&[0; 236][..], &[99, 130, 83, 99], options].concat();
        let request = message(&[12, 1, b'a', 53, 1, 3, 255]);
        assert_eq!(kind(&request), Some(MessageType::Request));
        assert_eq!(kind(&message(&[12, 9, b'a'])), None);
        assert_eq!(kind(&message(&[255])), None);
        assert_eq!(kind(&[]), None);
    }
}
