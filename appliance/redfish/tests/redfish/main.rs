//! Our client and Redfish services: a stock emulator, and one with faults.

#![allow(clippy::unwrap_used, reason = "tests: their helpers fail the test they help")]

mod faults;
mod server;
mod sushy;
