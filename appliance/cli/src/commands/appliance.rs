//! `box`: the box itself, before anybody has a kubeconfig of it and after.

pub mod claim;
mod flash;
mod leave;
pub mod pinned;
pub mod question;
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
    /// To one that nobody has a kubeconfig of.
    #[command(flatten)]
    Fresh(Fresh),
    /// To one's own.
    #[command(flatten)]
    Owned(Owned),
}

/// What is done before there is a kubeconfig.
#[derive(Debug, clap::Subcommand)]
pub enum Fresh {
    /// Make a fresh box yours, with the code that its screen shows.
    Claim(claim::Arguments),
    /// Write the box's image to a disk, which is erased, and read it again.
    ///
    /// Asks for the end of the disk's serial number first. Example:
    /// `tinbox box flash tinbox-1.5.0-x86_64.img.xz --to /dev/sdb`
    #[command(verbatim_doc_comment)]
    Flash(flash::Arguments),
}

/// What is asked of one's own box.
#[derive(Debug, clap::Subcommand)]
pub enum Owned {
    /// Have the box blink for a minute, to find it among others. Example: `tinbox box identify`
    Identify,
    /// What its owner wrote: box.toml on its boot volume, with every revision.
    #[command(subcommand)]
    Settings(settings::Command),
    /// How it is left.
    #[command(flatten)]
    Leave(leave::Command),
}

/// Do it; the kubeconfig goes to `file`.
///
/// # Errors
/// What failed.
pub async fn run(printer: &Printer, file: Option<PathBuf>, command: Fresh) -> Result<(), Error> {
    match command {
        Fresh::Claim(arguments) => claim::run(printer, file, arguments).await,
        Fresh::Flash(arguments) => flash::run(printer, arguments).await,
    }
}

/// Do it with the box of a kubeconfig.
///
/// # Errors
/// What failed.
pub async fn run_on(context: &Context, command: Owned) -> Result<(), Error> {
    match command {
        Owned::Identify => identify(context).await,
        Owned::Settings(command) => settings::run(context, command).await,
        Owned::Leave(command) => leave::run(context, command).await,
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
