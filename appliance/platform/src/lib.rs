//! The host's edges: what the box and the agent ask of the Linux that they are the whole userland
//! of. Process 1, its volumes, the network, update bundles.
//!
//! Never: a word of provisioning (machine, workflow, lease of somebody else), a decision that could
//! be made without the host. What decides is pure and has tables for tests; what touches the kernel
//! is thin.
//! Enter at [`init::run`] (process 1), [`net::configure`] and [`bundle::Reader`].

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
