//! Access to the Linux host: process 1, volumes, network and update bundles. The box and the agent
//! use this crate, as the only userland of their system.
//!
//! This crate must never handle provisioning (machines, workflows, leases of other machines), and
//! never take a decision that does not need the host. Decisions are pure functions with table
//! tests, and the code that calls the kernel is thin. Enter at [`init::run`] (process 1),
//! [`net::configure`] and [`bundle::Reader`].

pub mod bundle;
pub mod clock;
pub mod confinement;
mod disk;
mod error;
pub mod figures;
mod growth;
pub mod heartbeat;
pub mod init;
pub mod liveness;
pub mod net;
pub mod pstore;
pub mod reset;
pub mod slots;
mod sys;
pub mod tpm;
mod zram;

pub use error::Error;
