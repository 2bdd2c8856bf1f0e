//! The product's path on a virtual rack: real firmware, real BMC, real network, real operating
//! systems. Needs root and what `make setup` installs; says so otherwise.

#![allow(clippy::unwrap_used, reason = "a test crate: its helpers fail the test they help")]

mod actions;
mod bad_images;
mod cluster_api;
mod containers;
mod faults;
mod images;
mod path;
mod restarts;
mod storage;
mod strangers;
mod watch;
mod workers;
