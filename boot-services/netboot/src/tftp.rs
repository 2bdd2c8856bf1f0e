//! TFTP as boot ROMs speak it: RFC 1350 with the options of 2347, 2348, 2349 and 7440, read only,
//! from one port.
//!
//! [`packet`] turns bytes into packets and back, [`session`] is one transfer without a socket,
//! [`transfers`] is all of them without a socket, [`serve`] is the socket.

mod cache;
pub mod packet;
mod server;
pub mod session;
mod transfers;

pub use server::{TftpConfig, bind, serve};
