//! What machines say over syslog (UDP, RFC 3164 and RFC 5424): iPXE, kernels by netconsole, the
//! agent OS, installed systems. Kept in memory, some of the last lines of each machine.
//!
//! Nothing here is trusted: anybody may send, any bytes are a line, and both a machine's share and
//! the whole are bounded.
//!
//! Never: answers a sender, writes a file.
//!
//! Enter at [`bind`] and [`serve`]; [`parse`] and [`Log`] know no socket.

mod error;
mod log;
mod parse;
mod server;

pub use error::Error;
pub use log::{Entry, Log, MACHINE_BYTES, MAX_MACHINES, TOTAL_BYTES};
pub use parse::{Line, MAX_TEXT, Severity, parse};
pub use server::{MAX_DATAGRAM, Names, bind, serve};
