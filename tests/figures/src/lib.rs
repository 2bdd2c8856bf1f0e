//! What the benches have in common: figures beside their peers', with goals and a verdict.
//!
//! Never: measures anything, decides what is measured.
//! Enter at [`Table`].

mod table;

use std::fmt::Display;
use std::process::ExitCode;

pub use table::{Goal, Table, median};

/// How a bench ends: with its error, the whole chain of it, if there is one.
pub fn exit<E: Display>(done: Result<(), E>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
