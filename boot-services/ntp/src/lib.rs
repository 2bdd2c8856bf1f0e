//! The time: asked of servers, and told to the rack (SNTP, RFC 5905 section 14).
//!
//! Never: sets a clock (whoever owns the machine does), believes one server that disagrees with
//! the others, says a time that nobody told it without saying so.
//! Enter at [`ask`] (one server's opinion), [`choose`] (of several) and [`serve`].

mod client;
mod packet;
mod server;
mod standing;
mod timestamp;

pub use client::{ANSWER, Refusal, Sample, ask, choose, judge};
pub use packet::{BYTES, Leap, Mode, Packet};
pub use server::{answer, serve};
pub use standing::{Standing, Told};
pub use timestamp::{Offset, Timestamp};

/// The port of servers.
pub const PORT: u16 = 123;
