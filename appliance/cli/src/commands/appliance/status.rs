//! `status`: summary of the box, its machines and its problems.

use std::time::Duration;

use box_client::{Path, decode};
use machine_actions::{Action, offered};
use printers::overview::overview;
use status::view::problem::Remedy;
use status::view::{Problem, StatusView};
use stdx::MacAddr;

use super::super::Context;
use crate::error::Error;

/// Interval between two requests of `--watch`.
const WATCH_EVERY: Duration = Duration::from_secs(1);
/// Control sequence that clears a terminal and moves its cursor home (ECMA-48 ED, CUP).
const CLEAR: &str = "\u{1b}[2J\u{1b}[H";

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Show each change until Ctrl-C
    #[arg(short, long)]
    watch: bool,

    /// Print no table; the exit code is 1 if the box or a machine needs a person
    #[arg(long, conflicts_with = "watch")]
    check: bool,
}

/// Prints the summary.
///
/// # Errors
/// The box cannot be asked. With `--check` also if there is a problem that cannot wait.
pub async fn run(context: &Context, arguments: Arguments) -> Result<(), Error> {
    let view = view(context).await?;
    if arguments.check {
        return check(&view);
    }
    if let Some(printed) = context.printer.values(std::slice::from_ref(&view)) {
        return printed;
    }
    let mut shown = summary(context, &view);
    let clear = if arguments.watch && context.printer.is_terminal() { CLEAR } else { "" };
    context.printer.line(&format!("{clear}{}", shown.trim_end()))?;
    if !arguments.watch {
        return Ok(());
    }
    loop {
        tokio::time::sleep(WATCH_EVERY).await;
        let next = match self::view(context).await {
            Ok(view) => summary(context, &view),
            Err(error) if error.is_passing() => {
                format!("{shown}\n{}; trying again\n", stdx::chain(&error))
            }
            Err(error) => return Err(error),
        };
        if next != shown {
            context.printer.line(&format!("{clear}{}", next.trim_end()))?;
            shown = next;
        }
    }
}

/// Reads the status view of the box.
///
/// # Errors
/// The box cannot be asked, or its version has no such view.
pub async fn view(context: &Context) -> Result<StatusView, Error> {
    let answer = context.client.get(&Path::status()).await?;
    Ok(decode(&format!("read {}", Path::status()), answer)?)
}

fn summary(context: &Context, view: &StatusView) -> String {
    overview(view, context.printer.style(), |problem| command(problem, view))
}

/// Returns the command line that helps with a problem; `None` if there is none.
fn command(problem: &Problem, view: &StatusView) -> Option<String> {
    if problem.remedy == Remedy::Rescan {
        return Some(format!("tinbox network resume {}", problem.trouble.on));
    }
    let name = problem.machine.as_ref()?;
    let machine = view.machines.iter().find(|machine| machine.name == *name)?;
    let retry = offered(machine).contains(&Action::Retry);
    Some(format!("tinbox machine {} {name}", if retry { "retry" } else { "history" }))
}

fn check(view: &StatusView) -> Result<(), Error> {
    let headline = status::view::headline(view);
    match headline.needs {
        None => Ok(()),
        Some(needs) => Err(Error::NeedsPerson(needs)),
    }
}

/// Returns the name by which the view knows a machine: `text` is a name, MAC or IP address.
pub fn machine_named<'a>(view: &'a StatusView, text: &str) -> Option<&'a status::view::Machine> {
    let mac = text.parse::<MacAddr>().ok();
    let mut machines = view.machines.iter();
    machines.find(|machine| {
        machine.name.as_str() == text
            || mac.is_some() && machine.mac == mac
            || !text.is_empty() && machine.ip.as_str() == text
    })
}
