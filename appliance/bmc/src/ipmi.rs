//! IPMI 2.0 over LAN (RMCP+), the part that switches machines.
//!
//! From the bytes up: [`packet`] frames, [`crypto`] and [`rakp`] prove and hide, [`message`] and
//! [`command`] ask; [`handshake`] and [`session`] are the protocol as machines without I/O or
//! clock. Above them `link` is the socket, `connect` chooses the suite and opens a session, `line`
//! serializes what is sent to one BMC, and [`Ipmi`] is the driver.
//!
//! References are to the Intelligent Platform Management Interface Specification, second
//! generation, v2.0 revision 1.1.

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
