//! UDP socket to one BMC, with retransmission.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use tokio::net::UdpSocket;
use tokio::time::{Instant, timeout_at};

use crate::message::{Command, request, response};
use crate::packet::{MAX_DATAGRAM, Packet, legacy};
use crate::{Address, CompletionCode, Error, Malformed, Refusal};

/// Waits for a response after each transmission; the length is the number of transmissions.
pub(crate) type Waits = &'static [Duration];

/// Waits for commands that a BMC executes at once.
pub(crate) const QUICK: Waits = &[
    Duration::from_millis(500),
    Duration::from_millis(1000),
    Duration::from_millis(2000),
    Duration::from_millis(3000),
];

/// Waits for the first message to a BMC, which may be absent or may ignore an unknown cipher suite.
pub(crate) const KNOCK: Waits =
    &[Duration::from_millis(500), Duration::from_millis(1000), Duration::from_millis(2000)];

/// Waits for commands that take long, such as power sequencing. An early retransmission could make
/// the BMC execute the command twice.
pub(crate) const SLOW: Waits =
    &[Duration::from_millis(2500), Duration::from_millis(3500), Duration::from_millis(4000)];

/// Waits for requests whose response is optional.
pub(crate) const SHORT: Waits = &[Duration::from_millis(400), Duration::from_millis(800)];

/// Socket connected to the BMC: the kernel drops datagrams from other addresses.
#[derive(Debug)]
pub(crate) struct Link {
    socket: UdpSocket,
    address: Address,
    /// True after the first valid datagram from the BMC.
    has_answered: bool,
}

impl Link {
    /// Resolves the address of the BMC and opens a socket.
    pub(crate) async fn connect(address: &Address) -> Result<Self, Error> {
        let resolve = |source| Error::Resolve { address: address.clone(), source };
        let found = resolver::system().lookup(&address.host, address.port).await;
        let found = found.map_err(|error| resolve(Some(error)))?;
        let peer = *found.first().ok_or_else(|| resolve(None))?;
        let socket = open_socket(peer)
            .await
            .map_err(|source| Error::Socket { address: address.clone(), source })?;
        Ok(Self { socket, address: address.clone(), has_answered: false })
    }

    /// Returns the address of the BMC.
    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    /// Sends a message, and again after each of `waits`, until `accept` accepts a response.
    /// Datagrams that `accept` rejects are dropped and do not extend the wait.
    pub(crate) async fn exchange<M, T>(
        &mut self,
        step: &'static str,
        waits: Waits,
        machine: &mut M,
        transmit: impl Fn(&mut M) -> Vec<u8>,
        accept: impl Fn(&mut M, &[u8]) -> Result<T, Malformed>,
    ) -> Result<T, Error> {
        let start = Instant::now();
        let mut complaint = None;
        let mut buffer = [0; MAX_DATAGRAM + 1];
        for wait in waits {
            self.send(&transmit(machine)).await?;
            let until = Instant::now() + *wait;
            // The clock is asked too: a timeout never strikes while datagrams keep coming.
            while Instant::now() < until
                && let Ok(received) = timeout_at(until, self.socket.recv(&mut buffer)).await
            {
                let len = match received {
                    Ok(len) => len,
                    Err(error) if is_unreachable(&error) => continue,
                    Err(source) => return Err(self.socket_error(source)),
                };
                match accept(machine, &buffer[..len]) {
                    Ok(answer) => {
                        self.has_answered = true;
                        return Ok(answer);
                    }
                    Err(malformed) => {
                        tracing::debug!(bmc = %self.address, step, %malformed, "datagram dropped");
                        complaint = Some(malformed);
                    }
                }
            }
        }
        Err(self.silence(step, start.elapsed(), complaint))
    }

    /// Sends a request outside of a session. Returns the reply or the refusal.
    pub(crate) async fn ask<C: Command>(
        &mut self,
        command: &C,
        sequence: u8,
    ) -> Result<Result<C::Reply, Refusal>, Error> {
        let (message, expected) = request(command, sequence);
        let datagram = legacy(&message);
        let sent = |_: &mut ()| datagram.clone();
        let accept = |_: &mut (), received: &[u8]| {
            let Packet::Legacy(packet) = Packet::parse(received)? else {
                return Err(Malformed::Stray("RMCP+ session header"));
            };
            match response(packet.open(0)?, expected)? {
                (CompletionCode::OK, data) => command.reply(data).map(Ok),
                (code, _) => Ok(Err(Refusal::of::<C>(code))),
            }
        };
        self.exchange(C::NAME, SHORT, &mut (), sent, accept).await
    }

    /// Waits for the next datagram. Safe to cancel.
    pub(crate) async fn receive(&self) -> Result<Vec<u8>, Error> {
        let mut buffer = [0; MAX_DATAGRAM + 1];
        loop {
            match self.socket.recv(&mut buffer).await {
                Ok(len) => return Ok(buffer[..len].to_vec()),
                Err(error) if is_unreachable(&error) => {}
                Err(source) => return Err(self.socket_error(source)),
            }
        }
    }

    /// Sends a datagram once, without waiting for an answer.
    pub(crate) async fn send(&self, datagram: &[u8]) -> Result<(), Error> {
        match self.socket.send(datagram).await {
            Ok(_) => Ok(()),
            // Late error for an earlier datagram (ICMP), or a network that may come back.
            Err(error) if is_unreachable(&error) => Ok(()),
            Err(source) => Err(self.socket_error(source)),
        }
    }

    /// Sends a datagram once. Drops the datagram if the socket is not ready.
    pub(crate) fn try_send(&self, datagram: &[u8]) {
        if let Err(error) = self.socket.try_send(datagram) {
            tracing::debug!(bmc = %self.address, %error, "datagram not sent");
        }
    }

    fn silence(&self, step: &'static str, after: Duration, malformed: Option<Malformed>) -> Error {
        let address = self.address.clone();
        match malformed {
            // A late duplicate is neither an attack nor an answer.
            Some(Malformed::Stray(_) | Malformed::Replayed) | None if self.has_answered => {
                Error::Timeout { address, step, after }
            }
            None => Error::NoAnswer { address, step, after },
            Some(source) => Error::Hostile { address, step, source },
        }
    }

    fn socket_error(&self, source: io::Error) -> Error {
        Error::Socket { address: self.address.clone(), source }
    }
}

async fn open_socket(peer: SocketAddr) -> io::Result<UdpSocket> {
    let any = match peer {
        SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
        SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
    };
    let socket = UdpSocket::bind(any).await?;
    socket.connect(peer).await?;
    Ok(socket)
}

/// Returns true for errors from ICMP messages, which a restarting BMC causes.
fn is_unreachable(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused
            | io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkUnreachable
    )
}
