//! Tests the whole agent: its loop against the real service, its actions on real block devices.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod archive;
mod choices;
mod containers;
mod images;
mod loaders;
mod loops;
mod machine;
mod programs;
mod runner;
mod storage;
mod tinbox;
mod uploads;
