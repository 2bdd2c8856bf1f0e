//! API objects of people and controllers, and all rules about them that are pure functions.
//!
//! Never does I/O, and never uses an async runtime, the system clock or a store. Rules take the
//! time as an argument. Enter at [`tinkerbell`], [`bmc`] and [`network`] for the kinds. [`state`]
//! has the next step of a workflow, and [`document`] the content of a rendered Template.

pub mod bmc;
pub mod core;
pub mod document;
pub mod identity;
pub mod infrastructure;
pub mod management_cluster;
pub mod meta;
pub mod network;
pub mod os_image;
pub mod state;
pub mod tinkerbell;
