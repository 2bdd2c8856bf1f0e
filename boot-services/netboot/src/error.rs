//! Everything that can stop one of this crate's servers.

use std::io;
use std::net::SocketAddr;

/// A server could not start or could not go on. A single transfer's failure is not an error of the
/// server: it is told to the [`Observer`](crate::Observer).
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The TFTP socket could not be made.
    #[error("could not open the TFTP socket on {address}")]
    Bind {
        /// Where.
        address: SocketAddr,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The TFTP socket stopped working.
    #[error("could not receive from the TFTP socket")]
    Receive(#[source] io::Error),
}
