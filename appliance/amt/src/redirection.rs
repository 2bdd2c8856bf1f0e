//! Redirection (TCP ports 16994 and 16995): the serial console by serial-over-LAN.

mod console;
pub mod message;
mod session;

pub(crate) use console::open;
pub use session::{Reaction, RedirectionError, Session};

#[cfg(test)]
mod tests;
