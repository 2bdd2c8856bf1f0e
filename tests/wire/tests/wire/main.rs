//! The box's network code beside real programs, in one binary, so that it is linked once.

#![allow(clippy::unwrap_used, reason = "tests: their helpers fail the test they help")]

mod chrony;
mod net;
