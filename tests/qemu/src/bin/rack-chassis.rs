//! `rack-chassis SOCKET NUMBER get|set|check NAME [VALUE]...`: program that a NUC's `ipmi_sim` runs
//! for every chassis command. It sends the request to the rack that owns the NUC and prints
//! `name:value` lines.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(socket) = arguments.next() else {
        eprintln!("usage: rack-chassis SOCKET NUMBER get|set|check NAME [VALUE]...");
        return ExitCode::from(2);
    };
    let words: Vec<String> = arguments.collect();
    match qemu::ask_chassis(Path::new(&socket), &words) {
        Ok(lines) => {
            print!("{lines}");
            ExitCode::SUCCESS
        }
        Err(sentence) => {
            eprintln!("rack-chassis: {sentence}");
            ExitCode::FAILURE
        }
    }
}
