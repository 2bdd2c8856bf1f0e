//! State machines as tables, and pure functions for their transitions.

pub mod agents;
pub mod attempt;
pub mod disks;
pub mod queue;
pub mod report;
pub mod serve;
pub mod worker;
pub mod workflow;
