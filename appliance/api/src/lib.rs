//! The objects people and controllers exchange, and every rule about them that needs no world.
//!
//! Never: I/O, an async runtime, the system clock, a store. Rules take the time as an argument.
//! Enter at [`tinkerbell`] and [`bmc`] for the kinds, [`state`] for what happens next to a
//! workflow, [`template`] for how a Template becomes one.

pub mod bmc;
pub mod core;
pub mod meta;
pub mod state;
pub mod template;
pub mod tinkerbell;
