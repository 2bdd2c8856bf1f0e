//! `update`: updates of the box's own system.

use std::path::PathBuf;
use std::time::Duration;

use box_client::{ClientError, Path, UploadContent, decode};
use serde_json::{Value, json};
use status::plain;
use status::settings::SettingsReport;
use status::update::UpdateReport;
use status::view::{Update, UpdateState};
use tokio::fs::File;
use tokio::time::{Instant, sleep};

use super::Context;
use super::appliance::settings;
use super::backup::progress;
use crate::duration::duration;
use crate::error::Error;
use crate::output::Bar;

/// Interval between two progress requests.
const POLL: Duration = Duration::from_secs(2);

/// Show, install and roll back updates of the box's system
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Show the running version, the other slot and the result of the last update
    ///
    /// Example: `tinbox update status`
    Status(Wait),
    /// Install an update bundle. The box restarts when no machine is in use, tests itself for two
    /// minutes, and returns to the current version if the test fails
    ///
    /// The settings update.hours and update.restart can delay the restart.
    ///
    /// Example: `tinbox update apply tinbox-1.5.0-x86_64.update --wait`
    Apply(Apply),
    /// Return to the version in the other slot
    ///
    /// The box restarts and tests itself as after `tinbox update apply`.
    ///
    /// Example: `tinbox update rollback --wait`
    Rollback(Restart),
    /// Restart into an installed update now, at any hour
    ///
    /// Still waits for machines in use, unless --now is given.
    /// Example: `tinbox update restart`
    #[command(verbatim_doc_comment)]
    Restart(Restart),
    /// Block an update: the box refuses this version
    ///
    /// Versions that were blocked before stay blocked. The running version does not change.
    ///
    /// Example: `tinbox update hold 1.5.0`
    Hold {
        /// Version to block
        #[arg(value_name = "VERSION")]
        version: String,
    },
    /// Allow all versions again
    ///
    /// Example: `tinbox update unhold`
    Unhold,
}

#[derive(Debug, clap::Args)]
pub struct Apply {
    /// Update bundle: the `.update` file of a release
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    restart: Restart,
}

#[derive(Debug, clap::Args)]
pub struct Restart {
    /// Restart at once: do not wait for machines in use, and ignore update.hours and update.restart
    #[arg(long)]
    now: bool,
    #[command(flatten)]
    wait: Wait,
}

#[derive(Debug, clap::Args)]
pub struct Wait {
    /// Wait until the new version has passed its test or was rolled back. Ctrl-C ends only the
    /// wait, not the update
    #[arg(long)]
    wait: bool,
    /// Stop waiting after this time, such as 90s, 5m or 1h; the update continues
    #[arg(long, value_name = "TIME", default_value = "30m", value_parser = duration)]
    timeout: Duration,
}

/// Runs the command.
///
/// # Errors
/// A request fails. With `--wait` also if the update was rolled back.
pub async fn run(context: &Context, command: Command) -> Result<(), Error> {
    let sent = !matches!(command, Command::Status(_));
    let wait = match command {
        Command::Status(wait) => wait,
        Command::Apply(Apply { file, restart }) => {
            send(context, &file, &restart).await?;
            restart.wait
        }
        // Before `unhold` there was `hold release`.
        Command::Hold { version } if version == "release" => return hold(context, None).await,
        Command::Hold { version } => return hold(context, Some(&version)).await,
        Command::Unhold => return hold(context, None).await,
        Command::Restart(restart) => {
            context.client.post(&Path::restart(), query(&restart), &json!({})).await?;
            restart.wait
        }
        Command::Rollback(restart) => {
            context.client.post(&Path::rollback(), query(&restart), &json!({})).await?;
            restart.wait
        }
    };
    let began = Instant::now();
    let report = loop {
        match report(context).await {
            // A box without machines in use restarts at once, and a person may begin to wait while
            // the box restarts.
            Err(Error::Client(ClientError::Reach { .. }))
                if (sent || wait.wait) && began.elapsed() < wait.timeout =>
            {
                sleep(POLL).await;
            }
            report => break report?,
        }
    };
    if wait.wait {
        return until_end(context, report, wait.timeout).await;
    }
    show(context, &report)
}

fn query(restart: &Restart) -> &'static str {
    if restart.now { "?now=true" } else { "" }
}

/// Sets `update.hold` in the settings, so that the settings history shows who blocked the version.
async fn hold(context: &Context, version: Option<&str>) -> Result<(), Error> {
    let note = version.map_or("no version is held".to_owned(), |version| format!("hold {version}"));
    let set = |settings: &SettingsReport| {
        let value = version.map(|version| {
            let mut held = config::Update::of(&settings.text).hold;
            if !held.iter().any(|it| it == version) {
                held.push(version.to_owned());
            }
            format!("{held:?}")
        });
        [("update.hold".to_owned(), value)].into()
    };
    settings::change(context, set, note.clone()).await?;
    context.printer.line(&note)
}

async fn send(context: &Context, path: &std::path::Path, restart: &Restart) -> Result<(), Error> {
    let read = |source| Error::Read { file: path.display().to_string(), source };
    let file = File::open(path).await.map_err(read)?;
    let size = file.metadata().await.map_err(read)?.len();
    let (mut bar, began) = (context.printer.bar(), Instant::now());
    let tell = |done| bar.show(&progress("sending", (done, size), began));
    let content = UploadContent::file(file, size);
    context.client.upload(&Path::update(), query(restart), content, tell).await?;
    Ok(())
}

async fn report(context: &Context) -> Result<UpdateReport, Error> {
    let answer = context.client.get(&Path::update()).await?;
    Ok(decode("read the report", answer)?)
}

/// Waits until the update is good or rolled back. Tolerates the restart of the box.
async fn until_end(
    context: &Context,
    mut report: UpdateReport,
    limit: Duration,
) -> Result<(), Error> {
    let (mut bar, began, mut last_line) = (context.printer.bar(), Instant::now(), String::new());
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
            UpdateState::RolledBack => return Err(rolled_back(update)),
            _ => say(&mut bar, &mut last_line, printers::update::line(update)),
        }
        if began.elapsed() > limit {
            return Err(Error::too_late(format!("the update to {}", update.version), limit, None));
        }
        sleep(POLL).await;
        report = match self::report(context).await {
            Ok(report) => report,
            Err(Error::Client(ClientError::Reach { .. })) => {
                say(&mut bar, &mut last_line, "the box is unreachable".to_owned());
                report
            }
            Err(error) => return Err(error),
        };
    }
}

fn say(bar: &mut Bar, last_line: &mut String, line: String) {
    if line != *last_line {
        bar.note(&line);
        *last_line = line;
    }
}

fn rolled_back(update: &Update) -> Error {
    Error::Failed {
        what: format!("the update to {}", plain(&update.version)),
        how: "was rolled back",
        why: plain(&update.reason),
        look: "update status".to_owned(),
    }
}

fn show(context: &Context, report: &UpdateReport) -> Result<(), Error> {
    let value: Value = serde_json::to_value(report).unwrap_or_default();
    if let Some(printed) = context.printer.values(std::slice::from_ref(&value)) {
        return printed;
    }
    context.printer.table(printers::update::table(&report.slots))?;
    if let Some(update) = &report.update {
        context.printer.note(&printers::update::line(update));
    }
    Ok(())
}
