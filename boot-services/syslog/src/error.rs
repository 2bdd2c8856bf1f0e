//! Errors of the syslog receiver.

use std::io;
use std::net::SocketAddr;

/// Failure to start or to continue the receiver.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The syslog socket could not be opened or bound.
    #[error("could not open the syslog socket on {address}")]
    Bind {
        /// Local address and port of the socket.
        address: SocketAddr,
        /// Error of the system call.
        #[source]
        source: io::Error,
    },
    /// The syslog socket stopped working.
    #[error("could not receive from the syslog socket")]
    Receive(#[source] io::Error),
}
