//! Agent that runs from memory on the machine to install. It requests actions from the box, and
//! runs them on the machine's disks.
//!
//! It must never: access a disk without an action that names the disk, log an action's environment
//! or token, or leave the OS (reboot, kexec) before the box has acknowledged the report.
//!
//! Enter at [`runner::Runner`] (the loop: hello, request, run, report), [`actions::Action`]
//! (built-in actions) and [`container::Container`] (container images). [`init`] sets up the machine
//! from a bare kernel when the agent is process 1; [`log_sender`] then sends its log to the box.

pub mod actions;
pub mod console;
pub mod container;
mod error;
pub mod init;
pub mod log_sender;
pub mod outcome;
pub mod runner;
mod sys;

pub use error::Error;
