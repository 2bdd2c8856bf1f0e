//! Control of power and boot device of machines through their management controllers (BMCs).
//!
//! This crate must never act on an unconfirmed state, use a weaker protection than requested,
//! print a password, or know machines and jobs (the crate `controllers` does).
//!
//! Enter at [`Driver`], [`registry::open`] and [`ensure()`]; in other crates' tests at
//! [`fake::Fake`].

mod driver;
mod ensure;
mod error;
pub mod fake;
mod intel_amt;
pub mod ipmi;
pub mod registry;

pub use amt::{Fingerprint, Security};
pub use driver::{
    Address, BootDevice, BootOverride, CipherSuite, Credentials, Driver, Endpoint, Pending, Power,
    PowerAction, Protocol,
};
pub use ensure::{Step, decide, ensure};
pub use error::Error;
pub use intel_amt::IntelAmt;
