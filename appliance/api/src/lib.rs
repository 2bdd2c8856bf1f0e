//! The objects people and controllers exchange, and every rule about them that needs no world.
//!
//! Never: I/O, an async runtime, the system clock, a store. Rules take the time as an argument.
//! Enter at [`tinkerbell`], [`bmc`] and [`network`] for the kinds, [`state`] for what happens next
//! to a workflow, [`document`] for what a rendered Template says.

pub mod bmc;
pub mod core;
pub mod document;
pub mod identity;
pub mod meta;
pub mod network;
pub mod state;
pub mod tinkerbell;
