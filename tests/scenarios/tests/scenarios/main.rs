//! The product on a virtual rack: real firmware, real BMC, real network, real operating systems.
//! Needs root and the packages of `make setup`; a missing one is an error.

#![allow(clippy::unwrap_used, reason = "a test crate: its helpers fail the test they help")]

mod actions;
mod bad_images;
mod box_endpoint;
mod box_provider;
mod cluster_api;
mod containers;
mod faults;
mod first_machine;
mod founding_guide;
mod images;
mod path;
mod power;
mod quick_start;
mod restarts;
mod storage;
mod strangers;
mod watch;
mod workers;
