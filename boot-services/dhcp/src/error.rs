//! What can end the service; a bad packet never does.

use std::io;

/// Why the service could not start or go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The network interface does not exist in this network namespace.
    #[error("cannot find the network interface {interface}")]
    Interface {
        /// The name asked for.
        interface: String,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
    /// A socket could not be opened, prepared or bound (not root, or another server has the port).
    #[error("cannot open the {socket} socket on {interface}")]
    Open {
        /// Which socket: `DHCP (UDP port 67)` or `packet`.
        socket: &'static str,
        /// The interface it should be bound to.
        interface: String,
        /// What the kernel said.
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
        /// What the store said.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Receiving failed again and again; the interface is probably gone.
    #[error("cannot receive DHCP messages on {interface}")]
    Receive {
        /// The interface listened on.
        interface: String,
        /// The last failure.
        #[source]
        source: io::Error,
    },
}
