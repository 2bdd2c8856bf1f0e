//! Checks that an address is free before it is given, by ARP probes (RFC 5227 §2.1.1).
//!
//! A probe names no sender address (0.0.0.0), so it changes no ARP table. Any station that uses the
//! address answers, whether or not it answers pings.

mod checks;
mod edge;

pub use checks::{WAIT, claimant};
pub use edge::Checker;
