//! Work on a machine's disks: an image from a URL to a disk, archives into file systems,
//! partitions, arrays and volumes, erasing.
//!
//! Never: decides what is done (the agent's actions do), writes to a disk that is to be preserved,
//! speaks to the box's workflow service.
//!
//! Enter at [`stream::write_image`] (the image writer), [`unpack::unpack`], [`storage::partition`],
//! [`erase::carry_out`], and [`select::Selector`] with [`preserve::check`] for which disk is meant
//! and which must stay as it is.

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
