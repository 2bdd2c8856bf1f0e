//! The API as clients meet it: real TLS on the loopback, real kubectl.

mod kubectl;
mod requests;
mod server;
