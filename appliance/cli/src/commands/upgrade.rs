//! `upgrade`: the box's own system, and updates of it.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use status::progress::Progress;
use status::story::plain;
use status::update::Report;
use status::view::{Slot, Update, UpdateState};
use tokio::fs::File;
use tokio::time::{Instant, sleep};

use super::Context;
use super::appliance::settings;
use crate::args::duration;
use crate::client::Path;
use crate::error::Error;
use crate::output::{Bar, Table};

/// Between two questions how an update goes.
const LOOK: Duration = Duration::from_secs(2);

/// The box's own system, and updates of it.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Show what runs, what the other slot holds, and how the last update went.
    ///
    /// Example: `tinbox upgrade status`
    Status(Wait),
    /// Send the box an update bundle; it restarts when no machine is being worked on, proves
    /// itself for two minutes, or goes back to what it has now and says why.
    ///
    /// Example: `tinbox upgrade apply tinbox-1.5.0-x86_64.update --wait`
    Apply(Apply),
    /// Go back to the system in the other slot.
    ///
    /// Example: `tinbox upgrade rollback --wait`
    Rollback(Restart),
    /// Let an update that is in its slot restart the box, whatever its hours are.
    ///
    /// It still waits for machines that are being worked on, unless --now is given.
    /// Example: `tinbox upgrade restart`
    #[command(verbatim_doc_comment)]
    Restart(Restart),
    /// Refuse a release from now on, or no release any more.
    ///
    /// Example: `tinbox upgrade hold 1.5.0`, and later `tinbox upgrade hold release`
    #[command(verbatim_doc_comment)]
    Hold {
        /// Its version; `release` ends the hold.
        #[arg(value_name = "VERSION")]
        version: String,
    },
}

/// Which bundle.
#[derive(Debug, clap::Args)]
pub struct Apply {
    /// The file, as it is published beside the box's image.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    restart: Restart,
}

/// How to restart.
#[derive(Debug, clap::Args)]
pub struct Restart {
    /// Restart the box even while machines are being worked on.
    #[arg(long)]
    now: bool,
    #[command(flatten)]
    wait: Wait,
}

/// How long to stay.
#[derive(Debug, clap::Args)]
pub struct Wait {
    /// Stay until the update is good or undone; it goes on when you leave.
    #[arg(long)]
    wait: bool,
    /// With --wait, for how long at most.
    #[arg(long, value_name = "TIME", default_value = "30m", value_parser = duration)]
    timeout: Duration,
}

/// Do it.
///
/// # Errors
/// What failed; with `--wait` also an update that was undone.
pub async fn run(context: &Context, command: Command) -> Result<(), Error> {
    let wait = match command {
        Command::Status(wait) => wait,
        Command::Apply(Apply { file, restart }) => {
            send(context, &file, &restart).await?;
            restart.wait
        }
        Command::Hold { version } => return hold(context, &version).await,
        Command::Restart(restart) => {
            context.client.post(&Path::restart(), query(&restart), &json!({})).await?;
            restart.wait
        }
        Command::Rollback(restart) => {
            let path = Path::rollback();
            context.client.post(&path, query(&restart), &json!({})).await?;
            restart.wait
        }
    };
    let report = report(context).await?;
    if wait.wait {
        return until_end(context, report, wait.timeout).await;
    }
    show(context, &report)
}

fn query(restart: &Restart) -> &'static str {
    if restart.now { "?now=true" } else { "" }
}

/// A hold is one of the box's settings, so its history tells who holds what.
async fn hold(context: &Context, version: &str) -> Result<(), Error> {
    let held = (version != "release").then(|| format!("{version:?}"));
    let note = match &held {
        Some(_) => format!("hold {version}"),
        None => "no release is held".to_owned(),
    };
    settings::change(context, [("upgrade.hold".to_owned(), held)].into(), note.clone()).await?;
    context.printer.line(&note)
}

async fn send(context: &Context, path: &std::path::Path, restart: &Restart) -> Result<(), Error> {
    let read = |source| Error::Read { file: path.display().to_string(), source };
    let file = File::open(path).await.map_err(read)?;
    let size = file.metadata().await.map_err(read)?.len();
    let (mut bar, began) = (context.printer.bar(), Instant::now());
    let tell = |bytes_done| {
        bar.show(&Progress {
            action: "sending".to_owned(),
            message: String::new(),
            bytes_done,
            bytes_total: size,
            millis: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
        });
    };
    context.client.upload(&Path::update(), query(restart), (file, size), tell).await?;
    Ok(())
}

async fn report(context: &Context) -> Result<Report, Error> {
    let answer = context.client.get(&Path::update()).await?;
    serde_json::from_value(answer)
        .map_err(|error| Error::Answer { what: "read the report".into(), why: error.to_string() })
}

/// Until the update has an end. The box is away in between.
async fn until_end(context: &Context, mut report: Report, limit: Duration) -> Result<(), Error> {
    let (mut bar, began, mut told) = (context.printer.bar(), Instant::now(), String::new());
    loop {
        let Some(update) = &report.update else {
            bar.clear();
            return show(context, &report);
        };
        match update.state {
            UpdateState::Good => {
                bar.clear();
                return show(context, &report);
            }
            UpdateState::Undone => return Err(undone(update)),
            _ => say(&mut bar, &mut told, line(update)),
        }
        if began.elapsed() > limit {
            let after = stdx::seconds(u64::try_from(limit.as_millis()).unwrap_or(u64::MAX));
            return Err(Error::TooLate {
                what: format!("the update to {}", update.version),
                after,
            });
        }
        sleep(LOOK).await;
        report = match self::report(context).await {
            Ok(report) => report,
            Err(Error::Reach { .. }) => {
                say(&mut bar, &mut told, "the box is away".to_owned());
                report
            }
            Err(error) => return Err(error),
        };
    }
}

fn say(bar: &mut Bar, told: &mut String, line: String) {
    if line != *told {
        bar.note(&line);
        *told = line;
    }
}

fn undone(update: &Update) -> Error {
    Error::Failed {
        what: format!("the update to {}", plain(&update.version)),
        how: "was undone",
        why: plain(&update.reason),
        look: "tinbox upgrade status".to_owned(),
    }
}

fn show(context: &Context, report: &Report) -> Result<(), Error> {
    let value: Value = serde_json::to_value(report).unwrap_or_default();
    if let Some(printed) = context.printer.values(std::slice::from_ref(&value)) {
        return printed;
    }
    context.printer.table(&table(&report.slots))?;
    if let Some(update) = &report.update {
        context.printer.note(&line(update));
    }
    Ok(())
}

fn table(slots: &[Slot]) -> Table {
    let mut table = Table::new(&["SLOT", "VERSION", "RUNS", "STATE"]);
    for slot in slots {
        let state = match (slot.version.is_empty(), slot.good) {
            (true, _) => "empty",
            (false, true) => "good",
            (false, false) => "on trial",
        };
        let runs = if slot.running { "yes" } else { "no" };
        let version = plain(&slot.version);
        table.row([plain(&slot.name).into(), version.into(), runs.into(), state.into()]);
    }
    table
}

/// `1.5.0: waiting for machines (install-nuc1)`.
fn line(update: &Update) -> String {
    let mut line = format!("{}: {}", plain(&update.version), update.state.words());
    if let Some(percent) = update.percent {
        line += &format!(" {percent} %");
    }
    let names: Vec<String> = update.waits_for.iter().map(|name| plain(name)).collect();
    let about = if names.is_empty() { plain(&update.reason) } else { names.join(", ") };
    if !about.is_empty() {
        line += &format!(" ({about})");
    }
    line
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use status::update::Report;

    #[test]
    fn the_report() {
        let report: Report = serde_json::from_value(json!({
            "version": "1.4.0",
            "slots": [
                { "name": "A", "version": "1.4.0", "good": true, "running": true },
                { "name": "B", "version": "1.5.0", "good": false, "running": false },
            ],
            "update": {
                "version": "1.5.0", "state": "waiting", "waitsFor": ["install-nuc1", "wipe-nuc2"],
            },
        }))
        .unwrap();
        let update = super::line(report.update.as_ref().unwrap());
        let shown = super::table(&report.slots).render(false) + &update + "\n";
        crate::golden::check("upgrade-status.txt", &shown);
    }
}
