//! Control of power and boot device of machines through their management controllers (BMCs).
//!
//! This crate must never act on an unconfirmed state, use a weaker cipher suite than requested,
//! print a password, or know machines and jobs (the crate `controllers` does).
//!
//! Enter at [`Driver`], [`registry::open`] and [`ensure()`]; in other crates' tests at
//! [`fake::Fake`].

mod driver;
mod ensure;
mod error;
pub mod fake;
pub mod ipmi;
pub mod registry;

pub use driver::{
    Address, BootDevice, BootOverride, CipherSuite, Credentials, Driver, Endpoint, Pending, Power,
    PowerAction,
};
pub use ensure::{Step, decide, ensure};
pub use error::Error;
