//! Suites of tests that others wrote for a Kubernetes API server, run against ours.
//!
//! Never: changes a suite, counts a test that did not run as passed, leaves one out without saying
//! why in the suite's `left-out.md`.
//! Enter at [`Inert`], our API with the kinds the suites create and nothing behind them, at
//! [`Suite`], a compiled suite and what it reported, and at [`LeftOut`], what cannot pass.

mod inert;
mod left_out;
mod report;
mod suite;

pub use inert::Inert;
pub use left_out::LeftOut;
pub use report::Outcome;
pub use suite::Suite;
