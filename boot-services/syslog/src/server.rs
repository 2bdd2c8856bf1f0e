//! Socket of the syslog receiver.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::SystemTime;

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::UdpSocket;
use tokio_util::sync::CancellationToken;

use super::log::{Entry, Log};
use super::parse::parse;
use crate::Error;

/// Maximum bytes of a datagram; longer ones are truncated. RFC 5424, section 6.1, requires that
/// receivers accept at least 2048 bytes.
pub const MAX_DATAGRAM: usize = 8 << 10;
/// Receive buffer in bytes, so that no message is lost when a whole rack boots at once.
const SOCKET_BUFFER: usize = 1 << 20;
/// Consecutive receive errors after which the server stops.
const MAX_ERRORS: usize = 16;

/// Maps addresses to machines. Implementations must answer from memory.
pub trait Names: Send + Sync + 'static {
    /// Returns the name under which a machine's lines are stored. `None` for an unknown machine,
    /// whose lines are stored under its address.
    fn machine(&self, address: IpAddr) -> Option<String>;
}

/// Opens the receiver's socket. If `interface` is set, the socket receives from this network device
/// only.
///
/// # Errors
/// The socket cannot be opened or bound ([`Error::Bind`]).
pub fn bind(address: SocketAddr, interface: Option<&str>) -> Result<UdpSocket, Error> {
    open(address, interface).map_err(|source| Error::Bind { address, source })
}

fn open(address: SocketAddr, interface: Option<&str>) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_nonblocking(true)?;
    if let Some(interface) = interface {
        socket.bind_device(Some(interface.as_bytes()))?;
    }
    socket.set_recv_buffer_size(SOCKET_BUFFER)?;
    socket.bind(&address.into())?;
    UdpSocket::from_std(socket.into())
}

/// Receives messages until `shutdown`.
///
/// # Errors
/// The socket stopped working ([`Error::Receive`]).
pub async fn serve(
    socket: UdpSocket,
    names: Arc<dyn Names>,
    log: Arc<Log>,
    shutdown: CancellationToken,
) -> Result<(), Error> {
    let mut datagram = vec![0; MAX_DATAGRAM];
    let mut errors = 0;
    loop {
        let received = tokio::select! {
            () = shutdown.cancelled() => return Ok(()),
            received = socket.recv_from(&mut datagram) => received,
        };
        match received {
            Ok((length, peer)) => {
                errors = 0;
                let from = peer.ip().to_canonical();
                let line = parse(&datagram[..length]);
                let entry = Entry { received: SystemTime::now(), line };
                match names.machine(from) {
                    Some(machine) => log.push(&machine, entry),
                    None => log.push_unknown(&from.to_string(), entry),
                }
            }
            Err(source) => {
                errors += 1;
                if errors >= MAX_ERRORS {
                    return Err(Error::Receive(source));
                }
                tracing::warn!(error = %source, "a syslog message could not be received");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stdx::testing::Wait;

    struct One;

    impl Names for One {
        fn machine(&self, address: IpAddr) -> Option<String> {
            (address == IpAddr::from([127, 0, 0, 1])).then(|| "default/nuc1".to_owned())
        }
    }

    #[tokio::test]
    async fn lines_are_kept_by_machine() {
        let socket = bind("127.0.0.1:0".parse().unwrap(), Some("lo")).unwrap();
        let address = socket.local_addr().unwrap();
        let (log, shutdown) = (Arc::new(Log::default()), CancellationToken::new());
        let server = tokio::spawn(serve(socket, Arc::new(One), log.clone(), shutdown.clone()));
        for (from, text) in [("127.0.0.1:0", "<134>ipxe: hello"), ("127.0.0.2:0", "unknown")] {
            let machine = UdpSocket::bind(from).await.unwrap();
            machine.send_to(text.as_bytes(), address).await.unwrap();
        }
        let wait = Wait::new("both lines");
        while log.tail("default/nuc1", 1).is_empty() || log.tail("127.0.0.2", 1).is_empty() {
            tokio::time::sleep(wait.pause()).await;
        }
        assert_eq!(log.tail("default/nuc1", 1)[0].line.program, "ipxe");
        shutdown.cancel();
        server.await.unwrap().unwrap();
    }
}
