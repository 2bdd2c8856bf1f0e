//! Command line of the box: `tinbox`, which can also be called as `tink`.
//!
//! Never: uses data that the API does not report; shows a token outside of a kubeconfig; prompts
//! without an option for scripts. Results go to standard output, messages to standard error.
//!
//! Enter at [`run`]: `args` (command line) → `dispatch` → `commands` → the crate `box-client`
//! (API of the box) → `output`. `error` holds every failure with its hint and its exit code.

mod args;
mod commands;
mod dispatch;
mod duration;
mod error;
mod manifest;
mod output;
mod question;

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _};

use args::Args;
use commands::generated::complete;
use error::Error;

/// Runs one command line, beginning with the program's name. Returns the exit code: 0 done, 1 the
/// operation failed, 2 it could not be requested.
pub fn run(line: impl IntoIterator<Item = OsString>) -> ExitCode {
    let line: Vec<OsString> = line.into_iter().collect();
    if let [_, word, words @ ..] = line.as_slice()
        && word == complete::WORD
    {
        // No output is the result of every failure.
        let _ = in_runtime(async {
            complete::run(words).await;
            Ok(())
        });
        return ExitCode::SUCCESS;
    }
    let program = program(line.first());
    let command = Args::command().name(program).bin_name(program);
    let parsed = command.try_get_matches_from(line).and_then(|it| Args::from_arg_matches(&it));
    let args = match parsed {
        Ok(args) => args,
        Err(error) => error.exit(),
    };
    let outcome = in_runtime(dispatch::run(args, program == "tink"));
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is_broken_pipe() => ExitCode::SUCCESS,
        Err(error) => {
            // A closed standard error leaves the exit code to speak.
            let _ = std::io::stderr().write_all(report(&error, program).as_bytes());
            ExitCode::from(error.exit_code())
        }
    }
}

fn in_runtime(work: impl Future<Output = Result<(), Error>>) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(Error::Output)?;
    let done = runtime.block_on(work);
    // A thread that waits for standard input must not delay the end.
    runtime.shutdown_background();
    done
}

/// Returns the definition of all commands, for the generation and the check of the reference.
pub fn command() -> clap::Command {
    Args::command().name("tinbox").bin_name("tinbox")
}

/// Returns `tink` if the program was called by this name, else `tinbox`.
fn program(called: Option<&OsString>) -> &'static str {
    let stem = called.map(std::path::Path::new).and_then(std::path::Path::file_stem);
    if stem.is_some_and(|stem| stem == "tink") { "tink" } else { "tinbox" }
}

/// Formats an error: attempt, object and cause; then a line with a hint.
fn report(error: &Error, program: &str) -> String {
    let mut text = format!("error: {}\n", stdx::chain(error));
    if let Some(hint) = error.hint(program) {
        text.push_str(&format!("hint: {hint}\n"));
    }
    text
}
