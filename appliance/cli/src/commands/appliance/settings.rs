//! `box settings`: shows and changes the owner's settings.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path as File, PathBuf};
use std::process::Command as Program;

use box_client::{NewContent, Path, decode, query};
use jiff::Timestamp;
use serde_json::Value;
use status::plain;
use status::settings::{Diff, RevertRequest, Revision, SettingsChange, SettingsReport};

use crate::commands::Context;
use crate::error::Error;
use crate::output::{Cell, Table, since};

/// Editor if neither VISUAL nor EDITOR is set.
const EDITOR: &str = "vi";

/// Show and change the box's settings (box.toml on its boot volume), with their history
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Show the settings without secrets. Example: `tinbox box settings get`
    Get {
        /// Show secrets too
        #[arg(long)]
        secrets: bool,
    },
    /// Change some keys; other keys and comments stay unchanged
    ///
    /// Lists the keys that take effect only after a restart of the box; the box does not restart.
    /// Example: `tinbox box settings set time.zone=Europe/Berlin 'update.hours="02:00-05:00"'`
    #[command(verbatim_doc_comment)]
    Set {
        /// Key and value, as TOML or as bare text; `KEY=` removes the key. Tables of a list are
        /// counted from 0: network[1].mode
        #[arg(value_name = "KEY=VALUE", required = true, value_parser = pair)]
        keys: Vec<(String, Option<String>)>,
        /// Note for the history
        #[arg(long, value_name = "TEXT", default_value = "")]
        note: String,
    },
    /// Edit the settings with the editor of VISUAL or EDITOR [default: vi]. Example: `tinbox box
    /// settings edit`
    Edit {
        /// Read the new text from this file, or from standard input (-), without an editor
        #[arg(short, long, value_name = "FILE")]
        file: Option<PathBuf>,
        /// Note for the history
        #[arg(long, value_name = "TEXT", default_value = "")]
        note: String,
    },
    /// List the revisions of the settings, with author and time. Example: `tinbox box settings
    /// history`
    History,
    /// Show the differences between two revisions
    ///
    /// Example: `tinbox box settings diff 3`
    #[command(verbatim_doc_comment)]
    Diff {
        /// Older revision [default: the revision before the current]
        #[arg(value_name = "FROM")]
        from: Option<u32>,
        /// Newer revision [default: the current revision]
        #[arg(value_name = "TO")]
        to: Option<u32>,
    },
    /// Restore an older revision of the settings, as a new revision. Example: `tinbox box settings
    /// revert 3`
    Revert {
        /// Number of the revision, as shown by `tinbox box settings history`
        #[arg(value_name = "REVISION")]
        revision: u32,
        /// Note for the history
        #[arg(long, value_name = "TEXT", default_value = "")]
        note: String,
    },
}

/// Parses a setting such as `time.zone=Europe/Berlin`. An empty value (`None`) removes the key.
fn pair(text: &str) -> Result<(String, Option<String>), String> {
    let (key, value) = text.split_once('=').ok_or("expected KEY=VALUE")?;
    let value = (!value.is_empty()).then(|| value.to_owned());
    Ok((key.trim().to_owned(), value))
}

pub async fn run(context: &Context, command: Command) -> Result<(), Error> {
    match command {
        Command::Get { secrets } => {
            let report = report(context, secrets).await?;
            if let Some(printed) = context.printer.values(std::slice::from_ref(&report)) {
                return printed;
            }
            report.text.lines().try_for_each(|line| context.printer.line(&harmless(line)))?;
            restart_note(context, &report);
            Ok(())
        }
        Command::Set { keys, note } => {
            let report = change(context, |_| keys.into_iter().collect(), note).await?;
            changed(context, &report)
        }
        Command::Edit { file, note } => edit(context, file.as_deref(), &note).await,
        Command::History => history(context).await,
        Command::Diff { from, to } => diff(context, from, to).await,
        Command::Revert { revision, note } => {
            let now = report(context, false).await?;
            let order = serde_json::to_value(RevertRequest { revision, note }).unwrap_or_default();
            let path = Path::of_settings("revert");
            let answer =
                context.client.change_if(&path, "", &now.sum, NewContent::Order(&order)).await?;
            changed(context, &read(answer)?)
        }
    }
}

/// Changes some keys without a check of the current revision.
///
/// # Errors
/// The box refuses the change; nothing was changed.
pub async fn change(
    context: &Context,
    set: impl FnOnce(&SettingsReport) -> BTreeMap<String, Option<String>>,
    note: String,
) -> Result<SettingsReport, Error> {
    let now = report(context, false).await?;
    let part = serde_json::to_value(SettingsChange { set: set(&now), note }).unwrap_or_default();
    let path = Path::settings();
    read(context.client.change_if(&path, "", &now.sum, NewContent::Part(&part)).await?)
}

async fn report(context: &Context, secrets: bool) -> Result<SettingsReport, Error> {
    let query = if secrets { "?secrets=true" } else { "" };
    read(context.client.get_with(&Path::settings(), query).await?)
}

fn read<T: serde::de::DeserializeOwned>(answer: Value) -> Result<T, Error> {
    Ok(decode("read the settings", answer)?)
}

fn changed(context: &Context, report: &SettingsReport) -> Result<(), Error> {
    if let Some(printed) = context.printer.values(std::slice::from_ref(report)) {
        return printed;
    }
    let number = report.revision.map(|number| format!(" (revision {number})")).unwrap_or_default();
    context.printer.line(&format!("settings saved{number}"))?;
    if !report.live.is_empty() {
        context.printer.note(&format!("effective immediately: {}", plain(&report.live.join(", "))));
    }
    restart_note(context, report);
    Ok(())
}

fn restart_note(context: &Context, report: &SettingsReport) {
    if !report.restart.is_empty() {
        let keys = plain(&report.restart.join(", "));
        context.printer.note(&format!("effective after a restart of the box: {keys}"));
    }
}

async fn history(context: &Context) -> Result<(), Error> {
    let all: Vec<Revision> = read(context.client.get(&Path::of_settings("history")).await?)?;
    if let Some(printed) = context.printer.values(&all) {
        return printed;
    }
    context.printer.table(table(&all, Timestamp::now()))
}

fn table(all: &[Revision], now: Timestamp) -> Table {
    let mut table = Table::new(&["REVISION", "AGE", "BY", "NOW", "NOTE"]);
    for one in all {
        let age = one.at.map_or("unknown".to_owned(), |at| since(at, now));
        let current = if one.current { "yes" } else { "no" };
        let (by, note) = (plain(&one.actor), plain(&one.note));
        let cells = [one.number.to_string(), age, by, current.to_owned(), note];
        table.row(cells.map(Cell::from));
    }
    table
}

async fn diff(context: &Context, from: Option<u32>, to: Option<u32>) -> Result<(), Error> {
    let from = match from {
        Some(from) => Some(from),
        None => before_now(context).await?,
    };
    let text = |number: Option<u32>| number.map(|it| it.to_string()).unwrap_or_default();
    let query = query(&[("from", &text(from)), ("to", &text(to))]);
    let path = Path::of_settings("diff");
    let diff: Diff = read(context.client.get_with(&path, &query).await?)?;
    if let Some(printed) = context.printer.values(std::slice::from_ref(&diff)) {
        return printed;
    }
    if diff.text.is_empty() {
        context.printer.note("nothing differs");
        return Ok(());
    }
    diff.text.lines().try_for_each(|line| context.printer.line(&harmless(line)))
}

/// Replaces control characters by spaces, so that the text cannot control the terminal.
fn harmless(line: &str) -> String {
    let safe = |char: char| if char.is_control() && char != '\t' { ' ' } else { char };
    line.chars().map(safe).collect()
}

/// Returns the number of the revision before the current revision; `None` if there is none.
async fn before_now(context: &Context) -> Result<Option<u32>, Error> {
    let all: Vec<Revision> = read(context.client.get(&Path::of_settings("history")).await?)?;
    let now = all.iter().position(|one| one.current).unwrap_or(all.len());
    Ok(all[..now].last().map(|one| one.number))
}

async fn edit(context: &Context, file: Option<&File>, note: &str) -> Result<(), Error> {
    let now = report(context, true).await?;
    let (text, draft) = match file {
        Some(file) => (given(file)?, None),
        None => {
            let draft = Draft::new(&now.text)?;
            (draft.edited()?, Some(draft))
        }
    };
    if text == now.text {
        context.printer.note("nothing was changed");
        return Ok(());
    }
    let query = query(&[("note", note)]);
    let path = Path::settings();
    let asked = context.client.change_if(&path, &query, &now.sum, NewContent::Text(&text));
    match asked.await {
        Ok(answer) => changed(context, &read(answer)?),
        Err(error) => {
            if let Some(draft) = draft {
                let kept = draft.keep();
                let kept = kept.display();
                context.printer.note(&format!(
                    "your text is kept: correct it and run `tinbox box settings edit --file {kept}`"
                ));
            }
            Err(error.into())
        }
    }
}

fn given(file: &File) -> Result<String, Error> {
    let named = |source| Error::Read { file: file.display().to_string(), source };
    if file.as_os_str() != "-" {
        return std::fs::read_to_string(file).map_err(named);
    }
    let mut text = String::new();
    let read = io::stdin().lock().read_to_string(&mut text);
    read.map_err(|source| Error::Read { file: "standard input".to_owned(), source })?;
    Ok(text)
}

/// Copy of the settings for the editor, in a private folder, because it contains secrets.
struct Draft {
    folder: Option<PathBuf>,
    file: PathBuf,
}

impl Draft {
    fn new(text: &str) -> Result<Self, Error> {
        let folder = std::env::temp_dir().join(format!("tinbox-{}", stdx::random_hex(8)));
        let draft = Self { file: folder.join("box.toml"), folder: Some(folder.clone()) };
        let write = || {
            DirBuilder::new().mode(0o700).create(&folder)?;
            let mut options = OpenOptions::new();
            options
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&draft.file)?
                .write_all(text.as_bytes())
        };
        let name = draft.file.display().to_string();
        write().map_err(|source| Error::Write { file: name, source })?;
        Ok(draft)
    }

    /// Runs the editor and returns the edited text.
    fn edited(&self) -> Result<String, Error> {
        let named = ["VISUAL", "EDITOR"].iter().find_map(std::env::var_os);
        let editor = named.unwrap_or_else(|| EDITOR.into());
        // An editor may be named with arguments, as `code --wait` is.
        let ended = Program::new("sh")
            .arg("-c")
            .arg("exec $TINBOX_EDITOR \"$1\"")
            .arg("sh")
            .arg(&self.file)
            .env("TINBOX_EDITOR", &editor)
            .status();
        let failed = |why: String| Error::Unable {
            what: "edit the settings".to_owned(),
            why,
            hint: "name an editor with EDITOR, or give the new text with --file",
        };
        match ended {
            Ok(status) if status.success() => given(&self.file),
            Ok(status) => Err(failed(format!("the editor failed: {status}"))),
            Err(error) => Err(failed(error.to_string())),
        }
    }

    /// Prevents the removal of the file and returns its path.
    fn keep(mut self) -> PathBuf {
        self.folder = None;
        self.file.clone()
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if let Some(folder) = &self.folder {
            // The cleaner of temporary files removes the rest.
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Timestamp};
    use status::settings::Revision;

    use super::{pair, table};

    #[test]
    fn keys_and_values() {
        let value = |text: &str| Some(text.to_owned());
        assert_eq!(pair("a.b=c=d"), Ok(("a.b".to_owned(), value("c=d"))));
        assert_eq!(pair("a="), Ok(("a".to_owned(), None)));
        assert!(pair("a").is_err());
    }

    #[test]
    fn the_history() {
        let now = Timestamp::UNIX_EPOCH + SignedDuration::from_hours(100);
        let one = |number, hours: Option<i64>, actor: &str, note: &str| Revision {
            number,
            at: hours.map(|hours| now - SignedDuration::from_hours(hours)),
            actor: actor.to_owned(),
            note: note.to_owned(),
            sum: String::new(),
            current: number == 3,
        };
        let all = [
            one(1, None, "the boot volume", ""),
            one(2, Some(72), "the web page", "time zone and updates"),
            one(3, Some(1), "admin", "no \u{1b}[31mcolor"),
        ];
        golden::check("settings-history.txt", &table(&all, now).render(false));
    }
}
