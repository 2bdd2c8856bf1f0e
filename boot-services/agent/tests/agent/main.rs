//! The agent as a whole: its loop against the real service, its actions on real block devices.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod machine;
mod runner;
mod tinbox;
