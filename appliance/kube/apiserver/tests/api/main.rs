//! Tests of the API with real clients: TLS on the loopback interface, kubectl.

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
