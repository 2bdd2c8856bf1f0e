//! `machine`: power, inventory, history and log of a machine.

mod adopt;
pub mod bmc;
mod console;
mod history;
mod inventory;
mod log;
mod power;

use super::Context;
use crate::error::Error;

/// Control a machine and show its inventory, history and log
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Switch a machine's power through its BMC, or show the power state
    ///
    /// Example: `tinbox machine power on nuc1 --wait`
    Power(power::Arguments),
    /// Show the hardware of a machine as its agent last reported it
    ///
    /// Example: `tinbox machine inventory nuc1`
    Inventory(inventory::Arguments),
    /// Add the MAC of a new NIC to a machine
    ///
    /// Example: `tinbox machine adopt nuc1 52:54:00:77:00:99 --instead-of 52:54:00:77:00:01`
    Adopt(adopt::Arguments),
    /// Show the events of a machine since its last power-on through a BMC, with the time between
    /// them
    ///
    /// Without such a power-on, the list begins after the latest pause of 30 minutes.
    ///
    /// Example: `tinbox machine history nuc1 --follow`
    #[command(alias = "story")]
    History(history::Arguments),
    /// Show the latest log lines of a machine: agent, actions, and other syslog messages to the box
    ///
    /// Example: `tinbox machine log nuc1 --lines 50`
    Log(log::Arguments),
    /// Show the serial console of a machine, and type on it
    ///
    /// Needs a BMC with IPMI or Intel AMT. The box records the console from power-on; the command
    /// begins with the latest recorded output. Example: `tinbox machine console nuc1`
    Console(console::Arguments),
}

pub async fn run(context: &Context, command: Command) -> Result<(), Error> {
    match command {
        Command::Power(arguments) => power::run(context, arguments).await,
        Command::Inventory(arguments) => inventory::run(context, arguments).await,
        Command::Adopt(arguments) => adopt::run(context, arguments).await,
        Command::History(arguments) => history::run(context, arguments).await,
        Command::Log(arguments) => log::run(context, arguments).await,
        Command::Console(arguments) => console::run(context, arguments).await,
    }
}
