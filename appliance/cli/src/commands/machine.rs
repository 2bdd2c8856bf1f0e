//! `machine`: a machine's power, its story and its log.

mod log;
mod power;
mod story;

use super::Context;
use crate::error::Error;

/// A machine's power and its story.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Switch a machine through its BMC, or ask the BMC.
    ///
    /// Example: `tinbox machine power on nuc1 --wait`
    Power(power::Arguments),
    /// Tell what happened to a machine since it was last switched on, and where the time went.
    ///
    /// Example: `tinbox machine story nuc1 --follow`
    Story(story::Arguments),
    /// Show what a machine said over syslog last: its iPXE, its agent OS, its installed system.
    ///
    /// Example: `tinbox machine log nuc1 --lines 50`
    Log(log::Arguments),
}

/// Do it.
///
/// # Errors
/// What failed.
pub async fn run(context: &Context, command: Command) -> Result<(), Error> {
    match command {
        Command::Power(arguments) => power::run(context, arguments).await,
        Command::Story(arguments) => story::run(context, arguments).await,
        Command::Log(arguments) => log::run(context, arguments).await,
    }
}
