//! Test suites of other projects for a Kubernetes API server, run against ours.
//!
//! Never: changes a suite, counts a test that did not run as passed, leaves out a test without a
//! reason in the suite's `left-out.md`. Enter at [`Inert`], our API with the kinds that the suites
//! create and no controllers, at [`Suite`], a compiled suite with its run, and at [`LeftOut`], the
//! tests that cannot pass.

mod inert;
mod left_out;
mod report;
mod suite;

pub use inert::Inert;
pub use left_out::LeftOut;
pub use report::Outcome;
pub use suite::Suite;
