//! Access to the Linux host: process 1, volumes, network and update bundles. The box and the agent
//! use this crate, as the only userland of their system.
//!
//! This crate must never handle provisioning (machines, workflows, leases of other machines), and
//! never take a decision that does not need the host. Decisions are pure functions with table
//! tests, and the code that calls the kernel is thin. Enter at [`init::run`] (process 1),
//! [`net::configure`] and [`bundle::Reader`].

pub mod bundle;
pub mod confinement;
mod disk;
mod error;
mod hardware;
pub mod init;
pub mod liveness;
pub mod net;
mod privileged;
pub mod slots;
mod sys;

pub use error::Error;
pub use hardware::{clock, figures, tpm};
pub use init::{pstore, reset};
pub use liveness::heartbeat;
