//! Listener of an endpoint, and the forwarding of its connections.

use std::io;
use std::net::{SocketAddr, SocketAddrV4};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http_edge::{Connections, Limits};
use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};
use tokio::io::copy_bidirectional_with_sizes;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use crate::backends::Backends;

/// Maximum connections of all endpoints together, and of one client. Kubernetes clients use one or
/// two connections each. A connection needs two of the open files of the process, at least 4096.
const LIMITS: Limits = Limits { total: 512, each: 64 };
/// Bytes of the buffer for one direction of a connection.
const BUFFER: usize = 8 << 10;
/// Connections that the kernel holds until they are accepted.
const BACKLOG: i32 = 256;
/// Maximum time of a connection attempt to a machine.
const CONNECT_WAIT: Duration = Duration::from_secs(2);
/// Idle time before the first keepalive probe, and the interval of further probes. A watch of
/// Kubernetes may be idle for an hour, so an idle connection with a living peer is never closed.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(60);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);
/// Time without any response after which a peer counts as lost (tcp(7), `TCP_USER_TIMEOUT`).
const SILENCE: Duration = Duration::from_secs(120);

/// Backends that the checks and the connections of an endpoint share.
#[derive(Clone, Default)]
pub struct SharedBackends(Arc<Mutex<Backends>>);

impl SharedBackends {
    pub fn lock(&self) -> MutexGuard<'_, Backends> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the limits of the connections for all endpoints of a box.
pub fn connections() -> Connections {
    Connections::new(LIMITS)
}

/// Opens the listener of an endpoint. The port may also have a listener on all addresses with
/// `SO_REUSEPORT`, such as the API of the box: the kernel prefers the specific address.
///
/// # Errors
/// The host lacks the address, or another listener has the port.
pub fn listen(address: SocketAddrV4) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM.nonblocking(), Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

/// Connection to a machine; dropping it frees the machine for other connections.
struct Forwarded {
    address: SocketAddrV4,
    backends: SharedBackends,
}

impl Drop for Forwarded {
    fn drop(&mut self) {
        self.backends.lock().closed(self.address);
    }
}

/// Forwards the connection of a client to a healthy machine until both sides are closed, or another
/// connection needs its place.
pub async fn forward(client: TcpStream, backends: SharedBackends, connections: Connections) {
    let Ok(peer) = client.peer_addr() else { return };
    let Some(place) = connections.enter(peer.ip()) else {
        tracing::debug!(client = %peer, "too many connections");
        return;
    };
    place.ended().run_until_cancelled(relay(client, peer, backends)).await;
}

/// Connects to a healthy machine, and forwards. A machine that refuses the connection is skipped,
/// and its health stays: only checks decide about it. Without a healthy machine, the connection is
/// closed.
async fn relay(mut client: TcpStream, peer: SocketAddr, backends: SharedBackends) {
    let mut tried = Vec::new();
    let (mut server, session, _forwarded) = loop {
        // A statement of its own: the lock must not be held during the attempt.
        let choice = backends.lock().choose(&tried);
        let Some(choice) = choice else { return };
        let address = choice.address;
        let forwarded = Forwarded { address, backends: backends.clone() };
        match timeout(CONNECT_WAIT, TcpStream::connect(address)).await {
            Ok(Ok(server)) => break (server, choice.session, forwarded),
            Ok(Err(_)) | Err(_) => tried.push(address),
        }
    };
    if let Err(error) = prepare(&client).and_then(|()| prepare(&server)) {
        tracing::debug!(client = %peer, %error, "cannot prepare a connection");
        return;
    }
    tokio::select! {
        copied = copy_bidirectional_with_sizes(&mut client, &mut server, BUFFER, BUFFER) => {
            if let Err(error) = copied {
                tracing::trace!(client = %peer, %error, "a connection was interrupted");
            }
        }
        () = session.cancelled() => {}
    }
}

fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let socket = SockRef::from(stream);
    let keepalive = TcpKeepalive::new().with_time(KEEPALIVE_IDLE).with_interval(KEEPALIVE_INTERVAL);
    socket.set_tcp_keepalive(&keepalive)?;
    socket.set_tcp_user_timeout(Some(SILENCE))
}
