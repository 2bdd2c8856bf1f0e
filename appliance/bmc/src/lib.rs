//! Power and boot device of machines, through their management controllers (BMCs).
//!
//! Never: act on an unconfirmed state, fall back to a weaker cipher than requested, print a
//! password, know machines or jobs (the controllers do).
//!
//! Enter at [`Driver`], [`registry::open`], [`ensure()`]; tests of other crates at [`fake::Fake`].

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
