//! `boot-image IMAGE`: boots a copy of a disk image and waits for its first process.

use std::path::PathBuf;
use std::process::ExitCode;

use firmware::{Image, boots};

fn main() -> ExitCode {
    let Some(path) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("usage: boot-image IMAGE");
        return ExitCode::from(64);
    };
    match boots(&Image { path }) {
        Ok(line) => {
            println!("it boots: {line}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("boot-image: {error}");
            ExitCode::FAILURE
        }
    }
}
