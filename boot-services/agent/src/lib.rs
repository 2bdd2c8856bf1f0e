//! The agent: alone in a machine's memory, it asks the box what to do and does it to the disks.
//!
//! Never: touches a disk without an action that names it, writes an action's environment or its
//! token to a log, leaves the machine (reboot, kexec) before the box has acknowledged the report.
//!
//! Enter at [`runner::Runner`] (the loop: greet, ask, do, report), [`actions::Action`] (what is
//! built in) and [`container::Container`] (what is not). [`init`] makes a machine out of a bare
//! kernel when the agent is process 1.

pub mod actions;
pub mod console;
pub mod container;
mod error;
pub mod init;
pub mod runner;
mod sys;

pub use error::Error;
