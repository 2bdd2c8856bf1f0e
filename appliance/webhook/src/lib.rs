//! Power control of machines by HTTP requests: to a webhook of the owner as Rufio sends them, to
//! Home Assistant, and to smart plugs and switches whose requests are data.
//!
//! Never: follows a redirect, sends a password to a server that does not require it, puts a secret
//! into a URL or an error, or knows machines and jobs (the crate `controllers` does).
//!
//! Enter at [`Rpc`], [`HomeAssistant`] and [`Plug`].

mod client;
mod error;
mod home_assistant;
pub mod plug;
mod rpc;

pub use client::{Login, Tls};
pub use error::Error;
pub use home_assistant::HomeAssistant;
pub use plug::Plug;
pub use rpc::{Algorithm, Rpc, RpcOptions};

/// Power state that a server reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Power {
    /// The machine, or its outlet, has power.
    On,
    /// The machine, or its outlet, has no power.
    Off,
    /// The server answered, but does not know the state.
    Unknown,
}
