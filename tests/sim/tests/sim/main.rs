//! The simulated rack and fleet as a whole. Seeds are fixed; `SIM_SEED` chooses others.

#![allow(clippy::unwrap_used, reason = "a test crate: its helpers fail the test they help")]

mod boots;
mod every_step;
mod fleet;
mod scenarios;
mod seeds;
