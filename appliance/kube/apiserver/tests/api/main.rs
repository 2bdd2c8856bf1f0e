//! The API as clients use it: real TLS on the loopback, real kubectl.

#![allow(clippy::unwrap_used)] // the helpers beside the tests are test code too

mod access;
mod audit;
mod documents;
mod evasion;
mod forms;
mod kinds;
mod kubectl;
mod load;
mod pressure;
mod requests;
mod server;
mod sockets;
mod tokens;
