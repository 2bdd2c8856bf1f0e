//! Reads the files of a test run and summarizes them: counts, flaky tests, CPU time of each suite,
//! vanished tests, acceptance rows.
//!
//! Never runs a test and never changes a verdict in favor of a test. Enter at [`Run::read`] for the
//! results, [`ledger::Ledger`] for the flaky tests of earlier runs and [`acceptance::Acceptance`]
//! for the rows. The binary `tinbox-test-runner` measures one test, `tinbox-test-report` prints the
//! end of a run, `tinbox-test-acceptance` compares docs/acceptance.md with a run.

pub mod acceptance;
pub mod cpu;
pub mod junit;
pub mod ledger;

pub use junit::{Case, Run, Verdict};
