//! `box`: commands for the box itself. Only commands of [`WithoutKubeconfig`] need no kubeconfig.

pub mod claim;
mod flash;
mod leave;
pub mod settings;
pub mod status;

use std::path::PathBuf;

use box_client::Path;
use serde_json::json;

use super::Context;
use crate::error::Error;
use crate::output::{Format, Printer};

#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Commands that need no kubeconfig.
    #[command(flatten)]
    WithoutKubeconfig(WithoutKubeconfig),
    /// Commands that need the kubeconfig of the box.
    #[command(flatten)]
    WithKubeconfig(WithKubeconfig),
}

/// Commands that need no kubeconfig.
#[derive(Debug, clap::Subcommand)]
pub enum WithoutKubeconfig {
    /// Claim a new box with the code on its screen and save its kubeconfig
    ///
    /// The kubeconfig is written to the file of --kubeconfig [default: ~/.tinbox/admin.kubeconfig];
    /// an existing file is not overwritten.
    ///
    /// Example: `tinbox box claim 10.0.0.9`
    Claim(claim::Arguments),
    /// Write the box's image to a disk and verify it; this erases the disk
    ///
    /// First prompts for the end of the disk's serial number. Example:
    /// `tinbox box flash tinbox-1.5.0-x86_64.img.xz --to /dev/sdb`
    #[command(verbatim_doc_comment)]
    Flash(flash::Arguments),
}

/// Commands that need the kubeconfig of the box.
#[derive(Debug, clap::Subcommand)]
pub enum WithKubeconfig {
    /// Blink the box's LED for a minute. Example: `tinbox box identify`
    Identify,
    /// Show and change the box's settings (box.toml on its boot volume), with their history
    #[command(subcommand)]
    Settings(settings::Command),
    /// Commands `restart`, `poweroff` and `reset`.
    #[command(flatten)]
    Leave(leave::Command),
}

/// Runs a command that needs no kubeconfig. `claim` writes the new kubeconfig to `file`.
pub async fn run(
    printer: &Printer,
    file: Option<PathBuf>,
    command: WithoutKubeconfig,
) -> Result<(), Error> {
    match command {
        WithoutKubeconfig::Claim(arguments) => claim::run(printer, file, arguments).await,
        WithoutKubeconfig::Flash(arguments) => flash::run(printer, arguments).await,
    }
}

/// Runs a command on the box that the kubeconfig names.
pub async fn run_on(context: &Context, command: WithKubeconfig) -> Result<(), Error> {
    match command {
        WithKubeconfig::Identify => identify(context).await,
        WithKubeconfig::Settings(command) => settings::run(context, command).await,
        WithKubeconfig::Leave(command) => leave::run(context, command).await,
    }
}

async fn identify(context: &Context) -> Result<(), Error> {
    let answer = context.client.post(&Path::identify(), "", &json!({})).await?;
    let seconds = answer["seconds"].as_u64().unwrap_or_default();
    match context.printer.format {
        Format::Table | Format::Wide | Format::Name => {
            context.printer.line(&format!("the box blinks for {seconds} s"))
        }
        Format::Json | Format::Yaml => context.printer.object(&answer),
    }
}
