//! Workflow service for agents: authentication, assignment of actions, and reports. The service
//! supports both generations of Tinkerbell's protocol on one port.
//!
//! This crate contains no workflow rules. The rules for the next action and for reports are in
//! `api::state`. The rule for booting a machine for its workflow is in `controllers::workflow`.
//!
//! This crate must never use sockets, files, or the time of day without a [`stdx::Clock`]. It must
//! never acknowledge a report before [`objects::Objects`] has confirmed the write.
//!
//! Enter at [`Service`], which uses [`Backend`] (the rest of the box) and [`Runs`] (the workflows).

mod agents;
mod backend;
mod boots;
mod calls;
#[cfg(test)]
mod fixture;
mod power;
mod runs;
mod service;
mod waits;
mod wire;

pub use agents::Latest;
pub use backend::{Backend, TokenUse};
pub use boots::Boots;
pub use power::PowerOffError;
pub use runs::{End, Run, Runs};
pub use service::{Service, Settings};
