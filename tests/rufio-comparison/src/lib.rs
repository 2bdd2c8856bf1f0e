//! Comparison of the box's controllers for Machines, Jobs and Tasks with Rufio, the controllers of
//! Tinkerbell. Both get the same objects and control the same simulated machines.
//!
//! Never: part of a product. Enter at `tests/comparison/main.rs`.
