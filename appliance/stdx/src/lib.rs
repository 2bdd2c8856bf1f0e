//! Small types and functions that all crates share.
//!
//! Never: a domain word (machine, lease, workflow), I/O, an async runtime. Enter at [`MacAddr`],
//! [`Backoff`], [`Clock`], [`Secret`], [`chain`], [`Hint`]; tests at [`testing`].

mod backoff;
mod chain;
mod clock;
mod full;
mod hint;
mod id;
pub mod json;
mod mac;
mod redact;
mod size;
pub mod testing;

pub use backoff::Backoff;
pub use chain::chain;
pub use clock::{Clock, SystemClock, TestClock};
pub use full::is_full;
pub use hint::{Hint, sentence, sentences, split_hint, with_hint};
pub use id::{hex, random_hex, unhex};
pub use mac::{InvalidMac, MacAddr};
pub use redact::Secret;
pub use size::{bytes, rate, seconds};
