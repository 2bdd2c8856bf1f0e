//! Calls of agents, one module per call: methods of [`crate::Service`].

mod admission;
mod assign;
mod change;
mod choose_disk;
mod long_poll;
mod report;
mod worker;
