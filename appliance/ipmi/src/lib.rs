//! IPMI 2.0 over LAN (RMCP+): power, boot device, sensors, event log and serial console of a
//! machine.
//!
//! Layers, lowest first: [`packet`] frames; [`crypto`] and [`handshake::rakp`] authenticate and
//! encrypt; [`message`] and [`command`] encode requests; [`handshake`] and [`session`] are state
//! machines without I/O and clock. `line` has the socket, chooses the cipher suite, opens sessions
//! and serializes the commands to one BMC; [`Ipmi`] sends the commands.
//!
//! Section and table numbers are those of the Intelligent Platform Management Interface
//! Specification, second generation, v2.0 revision 1.1.
//!
//! This crate must never use a weaker protection than requested, repeat a power command that the
//! BMC may have executed, or print a password.
//!
//! Enter at [`Ipmi`].

pub mod command;
pub mod crypto;
mod device;
mod endpoint;
mod error;
pub mod handshake;
mod line;
pub mod message;
pub mod packet;
pub mod session;
mod wire;

pub use command::boot::{BootFlags, BootRequest, BootTarget};
pub use command::chassis::PowerRequest;
pub use command::sensor::SensorState;
pub use device::{Ipmi, Sensor};
pub use endpoint::{Address, CipherSuite, Credentials, Endpoint};
pub use error::{CompletionCode, Error, Malformed, Refusal, SessionStatus};
pub use line::Line;

#[cfg(test)]
mod tests;
