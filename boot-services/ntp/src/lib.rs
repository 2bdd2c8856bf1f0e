//! SNTP client and server (RFC 5905 section 14).
//!
//! Never: sets a clock (the owner of the machine does), trusts one server that disagrees with the
//! others, serves an unsynchronized time without marking it.
//!
//! Enter at [`ask`] (one server), [`choose`] (of several) and [`serve`].

mod client;
mod packet;
mod server;
mod standing;
mod timestamp;

pub use client::{ANSWER, Refusal, Sample, ask, choose, judge};
pub use packet::{BYTES, Leap, Mode, Packet};
pub use server::{answer, serve};
pub use standing::{ServerReport, Standing};
pub use timestamp::{Offset, Timestamp};

/// The port of servers.
pub const PORT: u16 = 123;
