//! Sockets of the service: UDP ports 67 and 4011 of one interface, and a packet socket for frames
//! to clients without an address.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::OwnedFd;

use rustix::net::sockopt;
use socket2::{Domain, Protocol, Socket, Type};
use stdx::MacAddr;
use tokio::io::unix::AsyncFd;
use tokio::net::UdpSocket;

use crate::engine::{Destination, Outgoing};
use crate::error::Error;
use crate::sockets::frame;
use crate::sockets::packet::{ETHERTYPE_IPV4, link_address};

/// UDP port of DHCP servers and relay agents.
const SERVER_PORT: u16 = 67;
/// Port at which PXE clients with an address request their boot file (PXE 2.1 §2.2.3).
const BOOT_SERVER_PORT: u16 = 4011;
/// UDP port of DHCP clients.
const CLIENT_PORT: u16 = 68;
/// Receive buffer in bytes, for a whole rack that is switched on at once: a thousand DISCOVERs of
/// 600 bytes, each counted by the kernel with its overhead.
const RECEIVE_BUFFER: usize = 4 << 20;
/// Maximum bytes of a datagram; a longer one is truncated and then malformed.
pub(crate) const MAX_DATAGRAM: usize = 4096;
/// Consecutive failed receives that end a service. One is normal when an interface goes down.
pub(crate) const MAX_FAILURES: u32 = 8;

/// Returns the current index of an interface.
pub(crate) fn interface_index(interface: &str) -> io::Result<u32> {
    let any = Socket::new(Domain::IPV4, Type::DGRAM, None)?;
    Ok(rustix::net::netdevice::name_to_index(&any, interface)?)
}

/// Sockets of the service, bound to one interface.
pub(crate) struct Link {
    interface: String,
    index: u32,
    server: Ipv4Addr,
    udp: UdpSocket,
    boot_server: UdpSocket,
    packet: Socket,
}

impl Link {
    /// Opens the sockets. Needs `CAP_NET_RAW`, `CAP_NET_BIND_SERVICE` and a tokio runtime.
    pub fn open(interface: &str, server: Ipv4Addr) -> Result<Self, Error> {
        let index = interface_index(interface)
            .map_err(|source| Error::Interface { interface: interface.to_owned(), source })?;
        let open =
            |socket| move |source| Error::Open { socket, interface: interface.to_owned(), source };
        let any = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, SERVER_PORT);
        let udp = open_udp(interface, any).map_err(open("DHCP (UDP port 67)"))?;
        // Requests at this port are unicast; answers must come from the requested address.
        let boot_server = open_udp(interface, SocketAddrV4::new(server, BOOT_SERVER_PORT))
            .map_err(open("PXE boot server (UDP port 4011)"))?;
        // Protocol 0: the socket only sends.
        let packet =
            Socket::new(Domain::PACKET, Type::DGRAM.nonblocking(), None).map_err(open("packet"))?;
        Ok(Self { interface: interface.to_owned(), index, server, udp, boot_server, packet })
    }

    /// Waits until a datagram is waiting at port 67 or 4011.
    pub async fn readable(&self) -> io::Result<()> {
        tokio::select! {
            ready = self.udp.readable() => ready,
            ready = self.boot_server.readable() => ready,
        }
    }

    /// Receives a datagram at port 67. Returns its length; `None` if no datagram is waiting.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        waiting(self.udp.try_recv(buffer))
    }

    /// Receives a datagram at port 4011. Returns its length and its sender; `None` if none waits.
    pub fn receive_boot_server(
        &self,
        buffer: &mut [u8],
    ) -> io::Result<Option<(usize, SocketAddrV4)>> {
        let received = waiting(self.boot_server.try_recv_from(buffer))?;
        Ok(received.and_then(|(length, from)| match from {
            SocketAddr::V4(from) => Some((length, from)),
            SocketAddr::V6(_) => None,
        }))
    }

    /// Checks that the interface is still the opened one. Sockets of a removed interface never
    /// fail; they only receive nothing.
    pub fn is_current(&self) -> io::Result<()> {
        match interface_index(&self.interface)? {
            index if index == self.index => Ok(()),
            _ => Err(io::Error::other("the interface was replaced by another of its name")),
        }
    }

    /// Sends one answer. A full queue drops the answer, as a busy network would; clients retry.
    pub fn send(&self, outgoing: &Outgoing) -> io::Result<()> {
        let message = &outgoing.message;
        match outgoing.to {
            Destination::Relay(relay) => self.send_udp(relay, SERVER_PORT, message),
            Destination::Address(client) => self.send_udp(client, CLIENT_PORT, message),
            Destination::Link { mac, address } => self.send_frame(mac, address, message),
            Destination::Broadcast => {
                self.send_frame(MacAddr([0xff; 6]), Ipv4Addr::BROADCAST, message)
            }
            Destination::BootServer(client) => {
                self.boot_server.try_send_to(message, client.into()).map(|_| ())
            }
        }
    }

    fn send_udp(&self, to: Ipv4Addr, port: u16, message: &[u8]) -> io::Result<()> {
        self.udp.try_send_to(message, SocketAddrV4::new(to, port).into()).map(|_| ())
    }

    /// Sends a message as an Ethernet frame. Broadcasts use frames too, so that their source is the
    /// configured address, regardless of the interface's other addresses.
    fn send_frame(&self, mac: MacAddr, address: Ipv4Addr, message: &[u8]) -> io::Result<()> {
        let source = SocketAddrV4::new(self.server, SERVER_PORT);
        let target = SocketAddrV4::new(address, CLIENT_PORT);
        let datagram = frame::datagram(source, target, message)
            .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        let station = link_address(self.index, ETHERTYPE_IPV4, Some(mac))?;
        self.packet.send_to(&datagram, &station).map(|_| ())
    }
}

fn waiting<T>(received: io::Result<T>) -> io::Result<Option<T>> {
    match received {
        Ok(received) => Ok(Some(received)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}

fn open_udp(interface: &str, address: SocketAddrV4) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM.nonblocking(), Some(Protocol::UDP))?;
    // Each interface is served by its own socket on the same port.
    socket.set_reuse_address(true)?;
    socket.bind_device(Some(interface.as_bytes()))?;
    if sockopt::set_socket_recv_buffer_size_force(&socket, RECEIVE_BUFFER).is_err() {
        // Without CAP_NET_ADMIN the system's own limit applies.
        socket.set_recv_buffer_size(RECEIVE_BUFFER)?;
    }
    // The box may not have its address yet.
    socket.set_freebind_v4(true)?;
    socket.bind(&address.into())?;
    UdpSocket::from_std(socket.into())
}

/// Registers a non-blocking socket with the runtime, which reports when it is ready.
#[allow(unsafe_code)]
pub(crate) fn watched(socket: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: `OwnedFd` names the same open descriptor for as long as `AsyncFd` owns it.
    let watched = unsafe { AsyncFd::register(socket) }?;
    Ok(watched)
}
