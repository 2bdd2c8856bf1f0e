//! IPMI 2.0 over LAN (RMCP+): the commands for power and boot device.
//!
//! Layers, lowest first: [`packet`] frames; [`crypto`] and [`rakp`] authenticate and encrypt;
//! [`message`] and [`command`] encode requests; [`handshake`] and [`session`] are state machines
//! without I/O and clock. `link` is the socket, `connect` chooses the cipher suite and opens a
//! session, `line` serializes the commands to one BMC, and [`Ipmi`] is the driver.
//!
//! Section and table numbers are those of the Intelligent Platform Management Interface
//! Specification, second generation, v2.0 revision 1.1.

mod client;
pub mod command;
mod connect;
pub mod crypto;
pub mod handshake;
pub(crate) mod line;
mod link;
pub mod message;
pub mod packet;
pub mod rakp;
pub mod session;
mod status;
mod wire;

pub use client::Ipmi;
pub use status::{CompletionCode, Malformed, SessionStatus};

#[cfg(test)]
mod tests;
