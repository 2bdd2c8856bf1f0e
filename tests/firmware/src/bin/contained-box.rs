//! The machine of a contained box, in a mount namespace of its own and the network namespace of a
//! rack's host:
//!
//! - `contained-box on DISK FOLDER [safe|factory]` runs the box of DISK until it is off, with the
//!   given choice in the boot menu; standard output is its serial console, and `cut` on standard
//!   input cuts the power. FOLDER holds the files of its devices;
//! - `contained-box inside FOLDER` becomes process 1 of the box; the first form runs it.

use std::process::ExitCode;

use anyhow::{Result, bail};
use firmware::contained::Staging;
use firmware::contained::run::{Options, run_box};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("contained-box: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["on", disk, folder, chosen @ ..] if chosen.len() < 2 => run_box(Options {
            disk: disk.into(),
            folder: folder.into(),
            chosen: chosen.first().map(|word| (*word).to_owned()),
        }),
        ["inside", folder] => Ok(Staging::at(folder.as_ref()).become_box()?),
        _ => bail!("usage: contained-box on DISK FOLDER [safe|factory] | inside FOLDER"),
    }
}
