//! Errors that end the service; a bad packet never does.

use std::io;

/// Errors at the start or during the service.
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
    /// A socket could not be opened, prepared or bound (not root, or another server has the port).
    #[error("cannot open the {socket} socket on {interface}")]
    Open {
        /// Kind of the socket: `DHCP (UDP port 67)` or `packet`.
        socket: &'static str,
        /// The interface it should be bound to.
        interface: String,
        /// Error of the operating system.
        #[source]
        source: io::Error,
    },
    /// The configuration contradicts itself.
    #[error("the DHCP settings are wrong: {}", .0.join("; "))]
    Config(Vec<String>),
    /// The leases could not be read or written.
    #[error("cannot {attempt} the DHCP leases")]
    Leases {
        /// `open`, `read` or `write`.
        attempt: &'static str,
        /// Error of the store.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Receiving failed again and again; the interface is probably gone.
    #[error("cannot receive DHCP messages on {interface}")]
    Receive {
        /// The interface listened on.
        interface: String,
        /// Last error of the socket.
        #[source]
        source: io::Error,
    },
}
