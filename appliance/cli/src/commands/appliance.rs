//! `box`: the box itself, before anybody has a kubeconfig of it and after.

pub mod claim;
mod flash;
pub mod pinned;
pub mod settings;

use std::path::PathBuf;

use serde_json::json;

use super::Context;
use crate::client::Path;
use crate::error::Error;
use crate::output::{Format, Printer};

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
    /// Have the box blink for a minute, to find it among others. Example: `tinbox box identify`
    Identify,
    /// What its owner wrote: box.toml on its boot volume, with every revision.
    #[command(subcommand)]
    Settings(settings::Command),
}

impl Command {
    /// Whether it speaks to a box that is somebody's.
    pub fn needs_kubeconfig(&self) -> bool {
        matches!(self, Command::Identify | Command::Settings(_))
    }
}

/// Do it; the kubeconfig goes to `file`.
///
/// # Errors
/// What failed.
pub async fn run(printer: &Printer, file: Option<PathBuf>, command: Command) -> Result<(), Error> {
    match command {
        Command::Claim(arguments) => claim::run(printer, file, arguments).await,
        Command::Flash(arguments) => flash::run(printer, arguments).await,
        // They need one.
        Command::Identify | Command::Settings(_) => Ok(()),
    }
}

/// Do it with the box of a kubeconfig.
///
/// # Errors
/// What failed.
pub async fn run_on(context: &Context, command: Command) -> Result<(), Error> {
    match command {
        Command::Identify => identify(context).await,
        Command::Settings(command) => settings::run(context, command).await,
        // They are done before there is one.
        Command::Claim(_) | Command::Flash(_) => Ok(()),
    }
}

/// Have the box blink.
async fn identify(context: &Context) -> Result<(), Error> {
    let answer = context.client.post(&Path::identify(), "", &json!({})).await?;
    let seconds = answer["seconds"].as_u64().unwrap_or_default();
    match context.printer.format {
        Format::Table | Format::Name => {
            context.printer.line(&format!("the box blinks for {seconds} s"))
        }
        Format::Json | Format::Yaml => context.printer.object(&answer),
    }
}
