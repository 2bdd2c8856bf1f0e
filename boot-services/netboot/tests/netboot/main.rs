//! Tests the file servers with real clients: machines in QEMU, atftp, curl, and an origin that
//! interrupts responses.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod cache;
mod ipxe;
mod tftp;
