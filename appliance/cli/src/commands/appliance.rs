//! `box`: the box itself, before anybody has a kubeconfig of it.

mod claim;
mod flash;
mod pinned;

use std::path::PathBuf;

use crate::error::Error;
use crate::output::Printer;

/// What to do.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Make a fresh box yours, with the code that its screen shows.
    Claim(claim::Arguments),
    /// Write the box's image to a disk, which is erased, and read it again.
    ///
    /// Asks for the end of the disk's serial number first. Example:
    /// `tinbox box flash tinbox-1.5.0-x86_64.img.xz --to /dev/sdb`
    #[command(verbatim_doc_comment)]
    Flash(flash::Arguments),
}

/// Do it; the kubeconfig goes to `file`.
///
/// # Errors
/// What failed.
pub async fn run(printer: &Printer, file: Option<PathBuf>, command: Command) -> Result<(), Error> {
    match command {
        Command::Claim(arguments) => claim::run(printer, file, arguments).await,
        Command::Flash(arguments) => flash::run(printer, arguments).await,
    }
}
