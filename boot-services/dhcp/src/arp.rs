//! Checks by ARP probes that an address is unused before it is offered (RFC 5227 §2.1.1).
//!
//! A probe has the sender address 0.0.0.0, so it changes no ARP table. Any station that uses the
//! probed address answers, even a station that ignores pings.

mod checker;
mod checks;

pub use checker::Checker;
pub use checks::{WAIT, claimant};
