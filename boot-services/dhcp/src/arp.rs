//! Is an address in use already? Asked by ARP probes (RFC 5227 §2.1.1) before it is given away.
//!
//! A probe names no sender address (0.0.0.0), so that it changes nobody's table, and any station
//! that uses the address answers it, whether or not it answers pings.

mod asked;
mod edge;

pub use asked::{WAIT, claimant};
pub use edge::Checker;
