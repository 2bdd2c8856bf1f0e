//! The service against real clients, real servers and real firmware, each test in network
//! namespaces of its own. Needs root: without it the first `ip` command fails, and says so.

#![allow(clippy::unwrap_used, reason = "a failure here is the test's failure")]

mod arp;
mod clients;
mod firmware;
mod foreign;
mod networkd;
mod pools;
mod rack;
mod v6;
