//! Tests of the program `tinbox` against the box's real API: store, engine, TLS and token.

#![allow(clippy::unwrap_used, reason = "tests: their helpers fail the test they help")]

mod actions;
mod backups;
mod capi;
mod claim;
mod errors;
mod leaving;
mod machines;
mod os_images;
mod place;
mod seeds;
mod settings;
mod shells;
mod templates;
mod workflows;
