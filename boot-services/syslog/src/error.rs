//! Errors of the receiver.

use std::io;
use std::net::SocketAddr;

/// The receiver could not start or could not go on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The syslog socket could not be made.
    #[error("could not open the syslog socket on {address}")]
    Bind {
        /// Where.
        address: SocketAddr,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The syslog socket stopped working.
    #[error("could not receive from the syslog socket")]
    Receive(#[source] io::Error),
}
