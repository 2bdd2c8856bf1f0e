//! `box restart`, `box poweroff` and `box reset`.

use box_client::{Path, decode};
use serde_json::json;
use status::plain;
use status::reset::{BoxAction, BoxActionRequest, ErasureSummary};

use crate::commands::Context;
use crate::error::Error;
use crate::question::confirm::{Confirm, Reply};

#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Restart the box; ends safe mode
    ///
    /// Restarts at once, without a prompt. Running workflows continue after the restart.
    ///
    /// Example: `tinbox box restart`
    Restart,
    /// Switch the box off; it cannot be switched on again remotely
    ///
    /// Example: `tinbox box poweroff --yes`
    Poweroff(Confirm),
    /// Reset the box: restart once without settings, or erase the data of the box
    ///
    /// Shows what will be erased and prompts for the box's name. Example:
    /// `tinbox box reset --level factory`
    #[command(verbatim_doc_comment)]
    Reset(Reset),
}

#[derive(Debug, clap::Args)]
pub struct Reset {
    /// safe: restart once without settings; serve no machine; keep all data. factory: erase this
    /// box's settings, keys, cached images, stored backups and machine records; the machines' disks
    /// are not touched. The box must then be claimed again.
    #[arg(long, value_enum)]
    level: Level,
    #[command(flatten)]
    confirm: Confirm,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Level {
    /// Restart once without settings; keep all data
    Safe,
    /// Erase settings, keys, cached images, stored backups and machine records
    Factory,
}

/// Runs the command.
///
/// # Errors
/// The request fails or is not confirmed; the box keeps running.
pub async fn run(context: &Context, command: Command) -> Result<(), Error> {
    let agreed = Confirm { yes: true, dry_run: false };
    let (leaving, confirm) = match command {
        Command::Restart => (BoxAction::Restart, agreed),
        Command::Poweroff(confirm) => (BoxAction::PowerOff, confirm),
        Command::Reset(Reset { level: Level::Safe, confirm }) => (BoxAction::Safe, confirm),
        Command::Reset(Reset { level: Level::Factory, confirm }) => (BoxAction::Factory, confirm),
    };
    let answer = context.client.get_if_any(&Path::reset()).await?;
    let answer = answer.ok_or_else(|| on_a_host(leaving))?;
    let erased: ErasureSummary = decode("read the summary of the reset", answer)?;
    let printer = &context.printer;
    let name = plain(&erased.name);
    let effect = plain(&leaving.effect(&erased));
    let effect = format!("{} of {name}: {effect}", leaving.label().to_lowercase());
    if !confirm.agreed(printer, &effect, Reply::Name(&name))? {
        return Ok(());
    }
    let wish = BoxActionRequest { level: leaving, name: erased.name.to_string() };
    context.client.post(&Path::reset(), "", &json!(wish)).await?;
    printer.line(&format!("{name} {}", what_happens(leaving)))?;
    if leaving == BoxAction::Factory {
        printer.note(
            "next: `tinbox --kubeconfig NEW box claim ADDRESS` with the code on the box's \
             screen; your present kubeconfig is no longer valid",
        );
    }
    Ok(())
}

/// Error for a box that is a program on a host system, whose API has no reset.
fn on_a_host(leaving: BoxAction) -> Error {
    let verb = if leaving == BoxAction::PowerOff { "switch off" } else { "restart" };
    let (what, why) = (format!("{verb} the box"), "it is a program on a host system".to_owned());
    Error::Unable { what, why, hint: "restart or stop tinboxd there" }
}

fn what_happens(leaving: BoxAction) -> &'static str {
    match leaving {
        BoxAction::Restart => "restarts",
        BoxAction::PowerOff => "switches itself off",
        BoxAction::Safe => "restarts in safe mode; `tinbox box restart` ends safe mode",
        BoxAction::Factory => "restarts and erases everything of its owner",
    }
}

#[cfg(test)]
mod tests {
    use super::{BoxAction, on_a_host};
    use crate::report;

    #[test]
    fn a_program_on_a_host_is_restarted_there() {
        let text = "error: cannot restart the box: it is a program on a host system\n\
                    hint: restart or stop tinboxd there\n";
        assert_eq!(report(&on_a_host(BoxAction::Restart), "tinbox"), text);
        let off = on_a_host(BoxAction::PowerOff).to_string();
        assert!(off.starts_with("cannot switch off the box: "), "{off}");
    }
}
