//! `machine console`: serial console of a machine, by its BMC.

mod terminal;

use std::io::{IsTerminal as _, Write as _};

use api::tinkerbell::HARDWARE;

use self::terminal::{Typed, keyboard};
use super::super::{Context, name_of};
use crate::error::Error;
use box_client::{ConsoleOutput, Path};

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Name, id, MAC or IP address of the machine
    #[arg(value_name = "NAME|ID|MAC|IP")]
    machine: String,

    /// Print the recorded output, and end
    #[arg(long)]
    recorded: bool,

    /// Show the output only, also on a terminal: no key goes to the machine
    #[arg(long, conflicts_with = "recorded")]
    read_only: bool,
}

/// Shows the console, and types what the user types.
///
/// # Errors
/// The machine has no console, or the connection is lost.
pub async fn run(context: &Context, arguments: Arguments) -> Result<(), Error> {
    let name = name_of(&context.find(HARDWARE, &arguments.machine).await?);
    let path = Path::console(&context.namespace, &name);
    let output = context.client.console(&path, !arguments.recorded).await?;
    let types = !arguments.recorded && !arguments.read_only && std::io::stdin().is_terminal();
    if !types {
        return show_all(output).await;
    }
    context.printer.note(&format!("console of {name}; Ctrl+] ends the command"));
    let (mut typed, _raw) = keyboard()?;
    let typing = async {
        while let Some(Typed::Keys(keys)) = typed.recv().await {
            context.client.type_characters(&path, keys).await?;
        }
        Ok(())
    };
    tokio::select! {
        ended = show_all(output) => ended,
        ended = typing => ended,
    }
}

async fn show_all(mut output: ConsoleOutput) -> Result<(), Error> {
    while let Some(bytes) = output.next().await? {
        show(&bytes)?;
    }
    Ok(())
}

/// Writes bytes of the machine as they are: the terminal must get its control sequences.
fn show(bytes: &[u8]) -> Result<(), Error> {
    let mut out = std::io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).map_err(Error::Output)
}
