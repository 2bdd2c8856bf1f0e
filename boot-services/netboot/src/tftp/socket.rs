//! Opens UDP sockets for servers.

use std::io;
use std::net::SocketAddr;

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::UdpSocket;

/// Opens and binds a socket. If `interface` is set, the socket receives packets from this network
/// device only, so packets from other networks are never answered. `buffer` is the size in bytes
/// for each direction, which the kernel limits; a smaller buffer is only slower.
pub(crate) fn bind(
    address: SocketAddr,
    interface: Option<&str>,
    buffer: usize,
) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_nonblocking(true)?;
    if let Some(interface) = interface {
        socket.bind_device(Some(interface.as_bytes()))?;
    }
    socket.set_recv_buffer_size(buffer)?;
    socket.set_send_buffer_size(buffer)?;
    socket.bind(&address.into())?;
    UdpSocket::from_std(socket.into())
}
