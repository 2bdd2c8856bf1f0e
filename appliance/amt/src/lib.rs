//! Intel AMT: power, boot device and inventory of a machine by WS-Management (DMTF DSP0226), and
//! the serial console by redirection.
//!
//! Layers, lowest first: [`tls`] pins certificates; [`envelope`] writes requests and [`message`]
//! reads answers; `line` connects, authenticates, and serializes the requests to one machine;
//! [`redirection`] opens the serial console; [`power`], [`boot`], [`identity`] and [`event_log`]
//! decide and interpret without I/O; [`Amt`] sends the requests.
//!
//! This crate must never take HTTP 200 for success (the `ReturnValue` of a method decides), send a
//! power request twice, change from TLS to plain HTTP, or print a password.
//!
//! Enter at [`Amt`].

pub mod boot;
mod device;
pub mod envelope;
mod error;
pub mod event_log;
pub mod identity;
mod line;
pub mod message;
pub mod power;
pub mod redirection;
pub mod tls;

pub use boot::BootTarget;
pub use boot::https::{InvalidCertificate, RootCertificate};
pub use device::Amt;
pub use error::{Error, ReturnTable, ReturnValue};
pub use identity::{Identity, Inventory};
pub use line::{Endpoint, Line, Login, Security};
pub use power::{HostState, PowerRequest};
pub use redirection::RedirectionError;
pub use tls::{Fingerprint, Trust};
