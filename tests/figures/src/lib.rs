//! Common parts of the benches: figures compared with those of peers, with goals and a verdict.
//!
//! Never: measures anything, or decides what is measured. Enter at [`Table`].

mod table;

use std::fmt::Display;
use std::process::ExitCode;

pub use table::{Goal, Table, median};

/// Exit code of a bench; prints an error with all its causes.
pub fn exit<E: Display>(done: Result<(), E>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
