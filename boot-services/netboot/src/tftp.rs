//! TFTP server for boot ROMs: RFC 1350 with the options of RFC 2347, 2348, 2349 and 7440, read
//! only, from one port.
//!
//! [`packet`] parses and writes packets. [`session`] is one transfer and [`transfers`] is all
//! transfers, both without a socket. `send` sends a window, [`serve`] runs the socket.

mod cache;
pub mod content;
pub mod packet;
mod send;
mod server;
pub mod session;
mod socket;
pub mod transfers;

pub use server::{TftpConfig, bind, serve};
