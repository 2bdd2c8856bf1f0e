//! Reconcilers: what is wanted against what is, for Workflow and for the BMC's Machine, Job, Task,
//! and for machines that enroll themselves.
//!
//! Each kind is observe → decide → apply. `decide` is pure: it sees values and the time and returns
//! steps; `apply` carries them out and decides nothing. A reconciler takes no input but the name of
//! its object, runs on a signal and on a tick, and may be stopped at any point and run again.
//!
//! Never: the store, HTTP, sockets (objects come through [`objects::Objects`], controllers of
//! machines through [`Drivers`]). Enter at [`runtime::Controller`].

pub mod ages;
pub mod enrollment;
pub mod job;
pub mod machine;
pub mod runtime;
pub mod task;
pub mod workflow;

pub use machine::{BmcDrivers, Drivers};
pub use workflow::References;
