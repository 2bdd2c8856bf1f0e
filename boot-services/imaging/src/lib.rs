//! Work on a machine's disks: writing images from URLs, unpacking archives into file systems,
//! making partitions, arrays and volumes, and erasing.
//!
//! Never: decides which work is done (the agent's actions decide), writes to a disk that is to be
//! preserved, speaks to the box's workflow service.
//!
//! Enter at [`stream::write_image`] (the image writer), [`unpack::unpack`], [`storage::partition`],
//! [`erase::carry_out`]. [`select::Selector`] finds the disk that an action names, and
//! [`preserve::check`] refuses a preserved disk.

pub mod disks;
pub mod erase;
mod error;
pub mod filesystem;
mod meter;
pub mod programs;
pub mod storage;
pub mod stream;
pub mod sys;
pub mod task;
pub mod unpack;

pub use disks::{ata, disk, preserve, select};
pub use error::Error;
pub use filesystem::{mount, openat2};
pub use meter::{Meter, MeterReading, StopOnDrop};
pub use programs::{children, output, program, tools};
pub use sys::chroot;
