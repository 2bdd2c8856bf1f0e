//! Socket of the DHCPv6 service: UDP port 547 of one interface, with its multicast group.

use std::io;
use std::net::{Ipv6Addr, SocketAddr, SocketAddrV6};
use std::sync::Arc;
use std::time::Instant;

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::UdpSocket;
use tokio_util::sync::CancellationToken;

use super::{Config, Directory, Engine, Observer};
use crate::error::Error;
use crate::foreign::Monitor;
use crate::sockets::udp::{MAX_DATAGRAM, MAX_FAILURES, interface_index};

/// `All_DHCP_Relay_Agents_and_Servers` (RFC 8415 §7.1).
const SERVERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 1, 2);
const SERVER_PORT: u16 = 547;

/// Serves `config.interface` until `shutdown` is cancelled. Needs `CAP_NET_BIND_SERVICE` and
/// `CAP_NET_RAW`; the interface must have IPv6, and should have the address `config.server`.
///
/// # Errors
/// The socket cannot be opened, or the interface was removed. The caller may retry.
pub async fn run(
    config: Config,
    directory: Arc<dyn Directory>,
    observer: Arc<dyn Observer>,
    shutdown: CancellationToken,
) -> Result<(), Error> {
    let interface = config.interface.clone();
    let name = &interface;
    let missing = |source| Error::Interface { interface: name.clone(), source };
    let open = |socket| move |source| Error::Open { socket, interface: name.clone(), source };
    let index = interface_index(&interface).map_err(missing)?;
    let mut monitor = Monitor::open(index).map_err(open("link state (netlink)"))?;
    let link = monitor.current().await.map_err(missing)?;
    let socket = open_udp(&interface, index).map_err(open("DHCPv6 (UDP port 547)"))?;
    let engine = Engine::new(config, link.mac, Instant::now());
    tracing::info!(interface, "serving DHCPv6");
    let result = tokio::select! {
        () = shutdown.cancelled() => Ok(()),
        source = serve(&socket, engine, &*directory, &*observer) => {
            Err(Error::Receive { interface: name.clone(), source })
        }
        source = monitor.gone() => Err(missing(source)),
    };
    tracing::info!(interface, "stopped serving DHCPv6");
    result
}

async fn serve(
    socket: &UdpSocket,
    mut engine: Engine,
    directory: &dyn Directory,
    observer: &dyn Observer,
) -> io::Error {
    let mut buffer = vec![0; MAX_DATAGRAM];
    let mut failures = 0;
    loop {
        let (length, from) = match socket.recv_from(&mut buffer).await {
            Ok((length, SocketAddr::V6(from))) => (length, from),
            Ok(_) => continue,
            Err(_) if failures < MAX_FAILURES => {
                failures += 1;
                continue;
            }
            Err(error) => return error,
        };
        failures = 0;
        let datagram = &buffer[..length];
        match engine.handle(datagram, *from.ip(), directory, observer, Instant::now()) {
            // Answers go to the source port: 546 for a client, 547 for a relay.
            Ok(Some(answer)) => {
                if let Err(error) = socket.try_send_to(&answer, from.into()) {
                    tracing::warn!(%from, %error, "cannot send a DHCPv6 reply");
                }
            }
            Ok(None) => {}
            Err(reason) => tracing::debug!(length, %reason, "not a client's DHCPv6 message"),
        }
    }
}

fn open_udp(interface: &str, index: u32) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::IPV6, Type::DGRAM.nonblocking(), Some(Protocol::UDP))?;
    socket.set_only_v6(true)?;
    // Each interface is served by its own socket on the same port.
    socket.set_reuse_address(true)?;
    socket.bind_device(Some(interface.as_bytes()))?;
    socket.bind(&SocketAddrV6::new(Ipv6Addr::UNSPECIFIED, SERVER_PORT, 0, 0).into())?;
    socket.join_multicast_v6(&SERVERS, index)?;
    UdpSocket::from_std(socket.into())
}
