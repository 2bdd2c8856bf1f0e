//! Errors that end the service; a bad packet never does.

use std::io;

/// Failure to start or to continue the service.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The network interface does not exist in this network namespace.
    #[error("cannot find the network interface {interface}")]
    Interface {
        /// Name of the interface.
        interface: String,
        /// Error of the operating system.
        #[source]
        source: io::Error,
    },
    /// A socket could not be opened or bound: the process is not root, or another server has the
    /// port.
    #[error("cannot open the {socket} socket on {interface}")]
    Open {
        /// Kind of the socket: `DHCP (UDP port 67)` or `packet`.
        socket: &'static str,
        /// Name of the interface to which the socket should be bound.
        interface: String,
        /// Error of the operating system.
        #[source]
        source: io::Error,
    },
    /// The configuration has mistakes; each text is `path: what`.
    #[error("the DHCP settings are wrong: {}", .0.join("; "))]
    Config(Vec<String>),
    /// The leases could not be read from or written to the store.
    #[error("cannot {attempt} the DHCP leases")]
    Leases {
        /// Operation that failed, such as `open`, `read` or `write`.
        attempt: &'static str,
        /// Error of the store.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Several receives in a row failed; the interface probably no longer exists.
    #[error("cannot receive DHCP messages on {interface}")]
    Receive {
        /// Name of the interface.
        interface: String,
        /// Last error of the socket.
        #[source]
        source: io::Error,
    },
}
