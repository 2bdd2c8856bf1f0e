//! Power and boot device of machines, through the management controller (BMC) each one has.
//!
//! Never: act on a state nobody confirmed, fall back to a cipher weaker than asked for, print a
//! password, know what a machine or a job is (that is the controllers' business).
//! Enter at [`Driver`], [`registry::open`], [`ensure()`]; tests of others at [`fake::Fake`].

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
