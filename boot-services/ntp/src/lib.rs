//! SNTP client and server (RFC 5905 section 14).
//!
//! Never: sets a clock (the owner of the machine does), trusts one server that disagrees with the
//! others, serves an unsynchronized time without marking it.
//!
//! Enter at [`query`] (one server), [`choose`] (of several) and [`serve`].

mod client;
mod clock_state;
mod packet;
mod server;
mod timestamp;

pub use client::{ANSWER_TIMEOUT, Refusal, RequestTimes, Sample, choose, evaluate, query};
pub use clock_state::{ClockState, ServerReport};
pub use packet::{BYTES, Leap, Mode, Packet};
pub use server::{answer, serve};
pub use timestamp::{Offset, Timestamp};

/// The port of servers.
pub const PORT: u16 = 123;
