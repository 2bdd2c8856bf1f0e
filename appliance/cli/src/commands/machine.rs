//! `machine`: actions on a machine, its power, inventory, history and log.

pub mod act;
mod adopt;
pub mod bmc;
mod console;
mod history;
mod install;
mod inventory;
mod log;
mod power;

use machine_actions::Action;

use super::Context;
use super::appliance::status;
use crate::error::Error;
use crate::output::Format;

/// Install and control machines; show their inventory, history and log
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// List machines with their state, also those that the box does not know yet
    ///
    /// Example: `tinbox machine list`
    #[command(alias = "ls")]
    List,
    /// Install an operating system on a machine; erases the chosen disk
    ///
    /// The machine may be new: then it also gets its name and address. With --dry-run, prints the
    /// rendered workflow. Example:
    /// `tinbox machine install 88:ae:dd:01:02:03 --system debian --name nuc1 --ssh-key id.pub`
    #[command(verbatim_doc_comment)]
    Install(Box<install::Install>),
    /// Add a new machine to the box without an installation; it boots the agent
    ///
    /// Example: `tinbox machine enroll 88:ae:dd:01:02:03 --name nuc1`
    #[command(alias = "add")]
    Enroll(install::Enroll),
    /// Continue the failed workflow of a machine at the action that failed
    ///
    /// Example: `tinbox machine retry nuc1`
    Retry(act::Arguments),
    /// Run the failed workflow of a machine again from its first action; writes its disks again
    ///
    /// Example: `tinbox machine start-over nuc1`
    StartOver(act::Arguments),
    /// Erase every disk that the Hardware of a machine lists
    ///
    /// Example: `tinbox machine erase nuc1`
    Erase(act::Arguments),
    /// Cancel the running workflow of a machine
    ///
    /// Example: `tinbox machine cancel nuc1`
    Cancel(act::Arguments),
    /// Pause the workflow of a machine after its running action
    ///
    /// Example: `tinbox machine pause nuc1`
    Pause(act::Arguments),
    /// Continue the paused workflow of a machine
    ///
    /// Example: `tinbox machine resume nuc1`
    Resume(act::Arguments),
    /// Remove the failure of a machine from the list of problems
    ///
    /// Example: `tinbox machine dismiss nuc1`
    Dismiss(act::Arguments),
    /// Switch a machine's power through its BMC, or show the power state
    ///
    /// Example: `tinbox machine power nuc1 on --wait`
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
        Command::List => list(context).await,
        Command::Install(arguments) => install::install(context, *arguments).await,
        Command::Enroll(arguments) => install::enroll(context, arguments).await,
        Command::Retry(arguments) => act::run(context, Action::Retry, arguments).await,
        Command::StartOver(arguments) => act::run(context, Action::StartOver, arguments).await,
        Command::Erase(arguments) => act::run(context, Action::Erase, arguments).await,
        Command::Cancel(arguments) => act::run(context, Action::Cancel, arguments).await,
        Command::Pause(arguments) => act::run(context, Action::Pause, arguments).await,
        Command::Resume(arguments) => act::run(context, Action::Resume, arguments).await,
        Command::Dismiss(arguments) => act::run(context, Action::Dismiss, arguments).await,
        Command::Power(arguments) => power::run(context, arguments).await,
        Command::Inventory(arguments) => inventory::run(context, arguments).await,
        Command::Adopt(arguments) => adopt::run(context, arguments).await,
        Command::History(arguments) => history::run(context, arguments).await,
        Command::Log(arguments) => log::run(context, arguments).await,
        Command::Console(arguments) => console::run(context, arguments).await,
    }
}

async fn list(context: &Context) -> Result<(), Error> {
    let view = status::view(context).await?;
    let printer = &context.printer;
    if let Some(printed) = printer.values(&view.machines) {
        return printed;
    }
    if printer.format == Format::Name {
        return view.machines.iter().try_for_each(|machine| printer.line(&machine.name));
    }
    if view.machines.is_empty() {
        printer.note("no machines; a machine appears here when it asks for an address");
        return Ok(());
    }
    printer.table(printers::machines::table(&view))
}
