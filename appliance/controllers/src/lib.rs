//! Reconcilers for Workflow, for Machine, Job and Task of BMCs, and for machines that enroll
//! themselves. A reconciler changes the current state of an object toward the desired state.
//!
//! Each kind has the steps observe → decide → apply. `decide` is a pure function of the observed
//! values and the time, and returns steps. `apply` executes the steps and takes no decision. The
//! only input of a reconciler is the key of its object. A reconciler runs on a signal and on a
//! tick. It may be stopped at any point and run again.
//!
//! This crate must never use the store, HTTP or sockets directly. Objects come through
//! [`objects::Objects`], and BMCs through [`Drivers`]. Enter at [`runtime::Controller`].

pub mod ages;
pub mod consoles;
pub mod enrollment;
pub mod job;
pub mod machine;
pub mod power;
pub mod runtime;
pub mod task;
pub mod workflow;

pub use machine::{BmcDrivers, Drivers};
pub use workflow::References;
