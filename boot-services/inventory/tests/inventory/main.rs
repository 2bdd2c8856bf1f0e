//! Tests of the inventory that need root: a network namespace with a switch in it.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod neighbors;
