//! Programs that an action runs, the image of tools that they come from, and their output.

pub mod children;
pub mod output;
pub mod program;
pub mod tools;
