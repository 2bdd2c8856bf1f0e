//! Redfish (DMTF DSP0266): power, boot device, virtual media, inventory, sensors and event log of a
//! machine by its BMC.
//!
//! Layers, lowest first: [`document`] and [`reason`] read JSON in which every field is optional;
//! [`quirks`] describes vendors as data; [`power`], [`boot`], [`media`] and [`hardware`] decide and
//! interpret without I/O; `line` connects, logs in and serializes the requests to one BMC;
//! [`Redfish`] sends the requests.
//!
//! This crate must never send a password or a token to another host, repeat a request that the BMC
//! may have executed, log in again and again, change from TLS to plain HTTP, or print a password.
//!
//! Enter at [`Redfish`].

pub mod boot;
mod device;
pub mod document;
mod error;
pub mod hardware;
mod learned;
mod line;
pub mod media;
pub mod power;
pub mod quirks;
pub mod reason;

pub use boot::{BootReading, BootRequest, BootTarget};
pub use device::Redfish;
pub use document::Document;
pub use error::Error;
pub use hardware::{Inventory, LogRecord, Reading};
pub use learned::Learned;
pub use line::{Endpoint, Line, Login, Security};
pub use power::{PowerRequest, PowerState};
pub use quirks::Quirks;
pub use reason::Reason;
pub use tls_pin::Trust;
