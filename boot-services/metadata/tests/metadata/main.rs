//! The service against its clients: Debian's cloud-init, and what Tootles answered.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod cloud_init;
mod tootles;
