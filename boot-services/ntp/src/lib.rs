//! SNTP client and server (RFC 5905 section 14).
//!
//! Never: sets a clock (the caller does), trusts one server that disagrees with the others, serves
//! an unsynchronized time without marking it.
//!
//! Enter at [`query`] (measures one server), [`choose`] (selects among several) and [`serve`].

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

/// UDP port of NTP servers.
pub const PORT: u16 = 123;
