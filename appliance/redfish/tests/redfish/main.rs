//! Our client and Redfish services: a stock emulator, recorded services of real BMCs, and one with
//! faults.

#![allow(clippy::unwrap_used, reason = "tests: their helpers fail the test they help")]

mod faults;
mod recordings;
mod replay;
mod server;
mod sushy;
