//! The API as clients meet it: real TLS on the loopback, real kubectl.

#![allow(clippy::unwrap_used)] // the helpers beside the tests are test code too

mod kubectl;
mod requests;
mod server;
