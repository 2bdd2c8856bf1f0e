//! Tests the file servers with real clients: machines in QEMU, atftp, curl, an origin that breaks
//! off.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod cache;
mod ipxe;
mod tftp;
