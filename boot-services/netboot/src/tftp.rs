//! TFTP as boot ROMs speak it: RFC 1350 with the options of 2347, 2348, 2349 and 7440, read only,
//! from one port.
//!
//! [`packet`] turns bytes into packets and back, [`session`] is one transfer without a socket,
//! [`transfers`] is all of them without a socket, `send` is how a window leaves, [`serve`] is the
//! socket.

mod cache;
pub mod content;
pub mod packet;
mod send;
mod server;
pub mod session;
pub mod transfers;

pub use server::{TftpConfig, bind, serve};
