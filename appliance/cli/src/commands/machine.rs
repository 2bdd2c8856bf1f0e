//! `machine`: a machine's power, what it is made of, its story and its log.

mod adopt;
mod inventory;
mod log;
mod power;
mod story;

use super::Context;
use crate::error::Error;

/// A machine's power, what it is made of, and its story.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Switch a machine through its BMC, or ask the BMC.
    ///
    /// Example: `tinbox machine power on nuc1 --wait`
    Power(power::Arguments),
    /// Show what a machine is made of, as its agent said last.
    ///
    /// Example: `tinbox machine inventory nuc1`
    Inventory(inventory::Arguments),
    /// Give a machine the MAC of its new network card.
    ///
    /// Example: `tinbox machine adopt nuc1 52:54:00:77:00:99 --instead-of 52:54:00:77:00:01`
    Adopt(adopt::Arguments),
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
        Command::Inventory(arguments) => inventory::run(context, arguments).await,
        Command::Adopt(arguments) => adopt::run(context, arguments).await,
        Command::Story(arguments) => story::run(context, arguments).await,
        Command::Log(arguments) => log::run(context, arguments).await,
    }
}
