//! The edge: UDP port 67 of one interface, and frames to clients without an address.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;

use rustix::net::sockopt;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use stdx::MacAddr;
use tokio::io::unix::AsyncFd;
use tokio::net::UdpSocket;

use crate::engine::{Destination, Outgoing};
use crate::error::Error;
use crate::frame;

/// The server's UDP port, and the relays'.
const SERVER_PORT: u16 = 67;
/// The client's UDP port.
const CLIENT_PORT: u16 = 68;
/// Room for a whole rack that is switched on at once: a thousand DISCOVERs of 600 bytes, each
/// counted by the kernel with its overhead.
const RECEIVE_BUFFER: usize = 4 << 20;
/// Longest datagram read; longer ones lose their end and are then malformed.
pub(crate) const MAX_DATAGRAM: usize = 4096;

/// The index of an interface, now.
pub(crate) fn interface_index(interface: &str) -> io::Result<u32> {
    let any = Socket::new(Domain::IPV4, Type::DGRAM, None)?;
    Ok(rustix::net::netdevice::name_to_index(&any, interface)?)
}

/// Both sockets of the service, bound to one interface.
pub(crate) struct Link {
    interface: String,
    index: u32,
    server: Ipv4Addr,
    udp: UdpSocket,
    packet: Socket,
}

impl Link {
    /// Opens both; needs `CAP_NET_RAW` and `CAP_NET_BIND_SERVICE`, and a tokio runtime.
    pub fn open(interface: &str, server: Ipv4Addr) -> Result<Self, Error> {
        let index = interface_index(interface)
            .map_err(|source| Error::Interface { interface: interface.to_owned(), source })?;
        let open =
            |socket| move |source| Error::Open { socket, interface: interface.to_owned(), source };
        let udp = open_udp(interface).map_err(open("DHCP (UDP port 67)"))?;
        // Protocol 0: it only sends.
        let packet =
            Socket::new(Domain::PACKET, Type::DGRAM.nonblocking(), None).map_err(open("packet"))?;
        Ok(Self { interface: interface.to_owned(), index, server, udp, packet })
    }

    /// Waits for a datagram; its length in `buffer`.
    pub async fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.udp.recv(buffer).await
    }

    /// Whether the interface is still the one that was opened. The sockets of a removed interface
    /// never fail, they only hear nothing any more.
    pub fn is_current(&self) -> io::Result<()> {
        match interface_index(&self.interface)? {
            index if index == self.index => Ok(()),
            _ => Err(io::Error::other("the interface was replaced by another of its name")),
        }
    }

    /// Sends one answer. A full queue loses it, as a busy wire would: clients ask again.
    pub fn send(&self, outgoing: &Outgoing) -> io::Result<()> {
        let message = &outgoing.message;
        match outgoing.to {
            Destination::Relay(relay) => self.send_udp(relay, SERVER_PORT, message),
            Destination::Address(client) => self.send_udp(client, CLIENT_PORT, message),
            Destination::Link { mac, address } => self.send_frame(mac, address, message),
            Destination::Broadcast => {
                self.send_frame(MacAddr([0xff; 6]), Ipv4Addr::BROADCAST, message)
            }
        }
    }

    fn send_udp(&self, to: Ipv4Addr, port: u16, message: &[u8]) -> io::Result<()> {
        self.udp.try_send_to(message, SocketAddrV4::new(to, port).into()).map(|_| ())
    }

    /// Broadcasts go this way too, so that their source is the configured address whatever other
    /// addresses the interface has.
    fn send_frame(&self, mac: MacAddr, address: Ipv4Addr, message: &[u8]) -> io::Result<()> {
        let datagram = frame::datagram((self.server, SERVER_PORT), (address, CLIENT_PORT), message)
            .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        self.packet.send_to(&datagram, &link_address(self.index, mac)?).map(|_| ())
    }
}

fn open_udp(interface: &str) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM.nonblocking(), Some(Protocol::UDP))?;
    // Each interface is served by its own socket on the same port.
    socket.set_reuse_address(true)?;
    socket.bind_device(Some(interface.as_bytes()))?;
    if sockopt::set_socket_recv_buffer_size_force(&socket, RECEIVE_BUFFER).is_err() {
        // Without CAP_NET_ADMIN the system's own limit applies.
        socket.set_recv_buffer_size(RECEIVE_BUFFER)?;
    }
    socket.bind(&SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, SERVER_PORT).into())?;
    UdpSocket::from_std(socket.into())
}

/// A non-blocking socket whose readiness the runtime watches.
#[allow(unsafe_code)]
pub(crate) fn watched(socket: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: `OwnedFd` names the same open descriptor for as long as `AsyncFd` owns it.
    let watched = unsafe { AsyncFd::register(socket) }?;
    Ok(watched)
}

/// The address of an Ethernet station on an interface, for IPv4 (packet(7)).
#[allow(unsafe_code)]
fn link_address(index: u32, mac: MacAddr) -> io::Result<SockAddr> {
    let invalid = |_| io::Error::from(io::ErrorKind::InvalidInput);
    let mut sll_addr = [0; 8];
    sll_addr[..6].copy_from_slice(&mac.0);
    let address = libc::sockaddr_ll {
        sll_family: u16::try_from(libc::AF_PACKET).map_err(invalid)?,
        sll_protocol: u16::try_from(libc::ETH_P_IP).map_err(invalid)?.to_be(),
        sll_ifindex: i32::try_from(index).map_err(invalid)?,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 6,
        sll_addr,
    };
    // SAFETY: `storage` is a zeroed sockaddr_storage, larger than and aligned for any socket
    // address; the closure writes one whole sockaddr_ll, whose family is set, and its length.
    let ((), address) = unsafe {
        SockAddr::try_init(|storage, length| {
            storage.cast::<libc::sockaddr_ll>().write(address);
            *length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
            Ok(())
        })
    }?;
    Ok(address)
}
