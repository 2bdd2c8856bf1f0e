//! IPMI 2.0 over LAN (RMCP+), the part that switches machines: no I/O below `client`.
//!
//! The references are to the Intelligent Platform Management Interface Specification, second
//! generation, v2.0 revision 1.1.

mod client;
mod status;

pub use client::Ipmi;
pub use status::{CompletionCode, Malformed, SessionStatus};
