//! Reconcilers for Workflow, for the BMC's Machine, Job and Task, and for machines that enroll
//! themselves. A reconciler changes the current state toward the wanted state.
//!
//! Each kind has the steps observe → decide → apply. `decide` is pure: it reads values and the
//! time, and returns steps. `apply` runs the steps and takes no decision. The only input of a
//! reconciler is the name of its object. A reconciler runs on a signal and on a tick, and may be
//! stopped at any point and run again.
//!
//! This crate must never use the store, HTTP or sockets directly. Objects come through
//! [`objects::Objects`], and BMCs through [`Drivers`]. Enter at [`runtime::Controller`].

pub mod ages;
pub mod enrollment;
pub mod job;
pub mod machine;
pub mod runtime;
pub mod task;
pub mod workflow;

pub use machine::{BmcDrivers, Drivers};
pub use workflow::References;
