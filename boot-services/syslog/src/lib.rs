//! Receives syslog messages of machines (UDP, RFC 3164 and RFC 5424): from iPXE, kernels by
//! netconsole, the agent OS, and installed systems. The last lines of each machine are stored in
//! memory.
//!
//! Messages are not trusted: any host may send them, and any bytes are a line. The bytes of each
//! machine and the total are limited.
//!
//! The receiver must never: answer a sender, or write a file.
//!
//! Enter at [`bind`] and [`serve`]; [`parse`] and [`Log`] do not use sockets.

mod error;
mod log;
mod parse;
mod server;

pub use error::Error;
pub use log::{Entry, Log, MACHINE_BYTES, MAX_MACHINES, TOTAL_BYTES};
pub use parse::{Line, MAX_TEXT, Severity, parse};
pub use server::{MAX_DATAGRAM, Names, bind, serve};
