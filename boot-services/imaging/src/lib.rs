//! Operations on a machine's disks: write images from URLs, create partitions, arrays and volumes,
//! mount file systems, erase.
//!
//! Never: decides which operation runs (the agent's actions decide), writes to a preserved disk,
//! calls the box's workflow service.
//!
//! Enter at [`stream::write_image`] (the image writer), [`storage::partition`],
//! [`erase::carry_out`]. [`select::Selector`] finds the disk that an action names, and
//! [`preserve::check`] refuses a preserved disk.

pub mod disks;
pub mod erase;
mod error;
mod meter;
pub mod mount;
pub mod programs;
pub mod storage;
pub mod stream;
pub mod sys;
pub mod task;

pub use disks::{ata, disk, preserve, select};
pub use error::Error;
pub use meter::{Meter, MeterReading, StopOnDrop};
pub use programs::{children, output, program, tools};
pub use sys::chroot;
