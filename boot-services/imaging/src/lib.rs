//! Work on a machine's disks: writing images from URLs, unpacking archives into file systems,
//! making partitions, arrays and volumes, and erasing.
//!
//! Never: decides which work is done (the agent's actions decide), writes to a disk that is to be
//! preserved, speaks to the box's workflow service.
//!
//! Enter at [`stream::write_image`] (the image writer), [`unpack::unpack`], [`storage::partition`],
//! [`erase::carry_out`]. [`select::Selector`] finds the disk that an action names, and
//! [`preserve::check`] refuses a preserved disk.

pub mod ata;
pub mod beneath;
pub mod children;
pub mod disk;
pub mod erase;
mod error;
pub mod inside;
mod meter;
pub mod mount;
pub mod output;
pub mod preserve;
pub mod program;
pub mod select;
pub mod storage;
pub mod stream;
pub mod sys;
pub mod tools;
pub mod unpack;

pub use error::Error;
pub use meter::{Meter, StopOnDrop};
