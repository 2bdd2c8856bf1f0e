//! Tests the service with real clients, servers and firmware, each test in its own network
//! namespaces. Needs root: without root the first `ip` command fails.

#![allow(clippy::unwrap_used, reason = "a failure here is the test's failure")]

mod arp;
mod clients;
mod firmware;
mod foreign;
mod networkd;
mod pools;
mod rack;
mod v6;
