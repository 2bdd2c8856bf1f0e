//! Commands of README and `docs/`, run on real boxes: the program `tinboxd`, and `tinbox`, kubectl
//! and other programs that a person types.
//!
//! A [`Walk`] takes the commands of a page in their order. A fixture is the world that the page
//! assumes: a box, files, typed answers, and replacements of values that differ for each person.
//!
//! Never: changes a command except by a declared replacement, or skips a command. The list of
//! commands that no test runs is `docs::typed_lines::NOT_RUN`.
//!
//! Enter at [`Walk::through`]; [`LinuxBox`] and [`FlashedBox`] are the boxes.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod agent;
mod disk;
mod flashed_box;
mod linux_box;
mod terminal;
mod walk;

pub use agent::{Agent, Manner};
pub use disk::Disk;
pub use flashed_box::{ADDRESS, FlashedBox, PASSPHRASE};
pub use linux_box::{LinuxBox, RESERVED};
pub use terminal::Terminal;
pub use walk::{Walk, block};
