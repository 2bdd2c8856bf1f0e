//! The agent: alone in a machine's memory, it asks the box what to do and does it to the disks.
//!
//! Never: touches a disk without an action that names it, writes an action's environment or its
//! token to a log, leaves the machine (reboot, kexec) before the box has acknowledged the report.
//!
//! Enter at [`runner::Runner`] (the loop: greet, ask, do, report), [`actions::Action`] (what is
//! built in), [`container::Container`] (what is not) and [`stream::write_image`] (the image
//! writer). [`init`] makes a machine out of a bare kernel when the agent is process 1.

pub mod actions;
pub mod ata;
mod beneath;
mod children;
pub mod console;
pub mod container;
mod disk;
pub mod erase;
mod error;
pub mod init;
mod inside;
pub mod inventory;
mod meter;
mod mount;
mod output;
pub mod preserve;
mod program;
pub mod runner;
pub mod select;
pub mod storage;
pub mod stream;
mod sys;
pub mod tools;
pub mod unpack;

pub use error::Error;
pub use inventory::boot_id;
pub use meter::Meter;
