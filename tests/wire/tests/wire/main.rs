//! The box's network code with real programs as peers, in one binary, so that the code is linked
//! once.

#![allow(clippy::unwrap_used, reason = "tests: their helpers fail the test they help")]

mod chrony;
mod endpoints;
mod neighbors;
mod net;
