//! `box`: the box itself, before anybody has a kubeconfig of it.

mod claim;
mod pinned;

use std::path::PathBuf;

use crate::error::Error;
use crate::output::Printer;

/// What to do.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Make a fresh box yours, with the code that its screen shows.
    Claim(claim::Arguments),
}

/// Do it; the kubeconfig goes to `file`.
///
/// # Errors
/// What failed.
pub async fn run(printer: &Printer, file: Option<PathBuf>, command: Command) -> Result<(), Error> {
    match command {
        Command::Claim(arguments) => claim::run(printer, file, arguments).await,
    }
}
