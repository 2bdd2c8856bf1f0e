//! Tests the service with its clients: Debian's cloud-init, and recorded answers of Tootles.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod cloud_init;
mod tootles;
