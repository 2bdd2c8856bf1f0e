//! The agents' side of the workflow engine: who asks, what they are given, what becomes of what
//! they report. Both generations of Tinkerbell's protocol end here, on one port.
//!
//! Decides nothing by itself: which action is next and what a report means are rules of
//! `api::state`, when a machine is booted for its workflow is `controllers::workflow`'s.
//!
//! Never: sockets, files, the time of day (a [`stdx::Clock`] is passed in), or an answer to a
//! report before [`objects::Objects`] says that it is written.
//!
//! Enter at [`Service`]; what it must know of the rest of the box is [`Rack`], what workflows there
//! are is [`Runs`].

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
