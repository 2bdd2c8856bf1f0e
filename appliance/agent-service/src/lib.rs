//! Agents' side of the workflow engine: authentication of agents, their actions, and their reports.
//! It serves both generations of Tinkerbell's protocol on one port.
//!
//! This crate has no rules of its own. The rules for the next action and for reports are in
//! `api::state`. The rule for booting a machine for its workflow is in `controllers::workflow`.
//!
//! Never: sockets, files, or the time of day (a [`stdx::Clock`] is passed in). Never a response to
//! a report before [`objects::Objects`] has confirmed the write.
//!
//! Enter at [`Service`]. [`Backend`] is the service's view of the rest of the box, and [`Runs`] is
//! its index of workflows.

mod agents;
mod backend;
mod boots;
mod calls;
#[cfg(test)]
mod fixture;
mod runs;
mod service;
mod waits;
mod wire;

pub use agents::Latest;
pub use backend::{Backend, TokenUse};
pub use boots::Boots;
pub use runs::{End, Run, Runs};
pub use service::{Service, Settings};
