//! `rack-warden NAME`: removes the rack NAME if its harness ends, for any reason, without having
//! removed it. The harness holds the other end of standard input. Input that ends after the word
//! `done` means that the rack is removed already.

use std::io::Read;
use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(name) = std::env::args().nth(1) else {
        eprintln!("usage: rack-warden NAME");
        return ExitCode::from(2);
    };
    let mut said = String::new();
    // Any error means that the harness has ended.
    let _ = std::io::stdin().take(64).read_to_string(&mut said);
    if said.trim() == "done" {
        return ExitCode::SUCCESS;
    }
    match qemu::remove_rack(&name) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("rack-warden: take down rack {name}: {}", stdx::chain(&error));
            ExitCode::FAILURE
        }
    }
}
