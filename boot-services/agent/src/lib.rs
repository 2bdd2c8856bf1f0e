//! The agent: alone in a machine's memory, it asks the box what to do and does it to the disks.
//!
//! Never: touches a disk without an action that names it, writes an action's environment or its
//! token to a log, leaves the machine (reboot, kexec) before the box has acknowledged the report.
//!
//! Enter at [`runner::Runner`] (the loop: greet, ask, do, report), [`actions::Action`] (what is
//! built in) and [`stream::write_image`] (the image writer). [`init`] makes a machine out of a bare
//! kernel when the agent is process 1.

pub mod actions;
mod children;
pub mod console;
mod disk;
mod error;
pub mod init;
mod inventory;
mod meter;
mod mount;
pub mod net;
pub mod preserve;
pub mod runner;
pub mod select;
pub mod stream;
mod sys;
pub mod unpack;

pub use error::Error;
pub use inventory::{boot_id, inventory};
pub use meter::Meter;
