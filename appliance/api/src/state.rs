//! State machines as tables, and the pure rules that move through them.

pub mod agents;
pub mod attempt;
pub mod disks;
pub mod queue;
pub mod report;
pub mod serve;
pub mod worker;
pub mod workflow;
