//! Agents' side of the workflow engine: authentication of agents, their actions, and their reports.
//! It serves both generations of Tinkerbell's protocol on one port.
//!
//! This crate has no rules of its own. The rules for the next action and for reports are in
//! `api::state`. The rule for booting a machine for its workflow is in `controllers::workflow`.
//!
//! Never: sockets, files, or the time of day (a [`stdx::Clock`] is passed in). Never a response to
//! a report before [`objects::Objects`] has confirmed the write.
//!
//! Enter at [`Service`]. [`Rack`] is the service's view of the rest of the box, and [`Runs`] is its
//! index of workflows.

mod admission;
mod assign;
mod boots;
mod change;
mod choose;
#[cfg(test)]
mod desk;
mod hold;
mod known;
mod rack;
mod report;
mod run;
mod runs;
mod service;
mod waits;
mod wire;
mod worker;

pub use boots::Boots;
pub use known::Latest;
pub use rack::{Rack, TokenUse};
pub use run::{End, Run};
pub use runs::Runs;
pub use service::{Service, Settings};
