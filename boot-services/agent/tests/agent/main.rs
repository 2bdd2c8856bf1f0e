//! The agent as a whole: its loop against the real service, its actions on real block devices.

mod machine;
mod runner;
mod tinbox;
