//! Runs the programs of actions: child processes, their output, and the tools image.

pub mod children;
pub mod output;
pub mod program;
pub mod tools;
