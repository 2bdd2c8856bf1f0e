//! `machine history`: the Events of a machine, of its BMC and of its workflows, in order of time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use api::core::EVENT;
use api::tinkerbell::{HARDWARE, Hardware, WORKFLOW, Workflow};
use box_client::{ClientError, Path, WatchEvent};
use jiff::Timestamp;
use serde_json::{Value, json};
use status::boot_event::unknown_machine;
use status::history::{EventRecord, Line, Outcome, history, silence, times};
use status::words::Tone;
use tokio::time::{Instant, timeout_at};

use super::super::{Context, name_of};
use crate::duration::duration;
use crate::error::Error;
use crate::output::{Cell, Format, Table};

/// Maximum number of events kept while following; the box stores fewer.
const EVENTS_MAX: usize = 10_000;

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Name, id, MAC or IP address; the MAC of an unknown machine shows its requests
    #[arg(value_name = "NAME|ID|MAC|IP")]
    machine: String,

    /// Follow new events until the installed system phones home or a workflow of the machine fails
    #[arg(short, long)]
    follow: bool,

    /// Stop following after this time, such as 90s, 5m or 1h; a restart of the box does not end the
    /// command
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = duration)]
    timeout: Duration,
}

/// Prints the history.
///
/// # Errors
/// A request fails. With `--follow` also if a workflow fails.
pub async fn run(context: &Context, arguments: Arguments) -> Result<(), Error> {
    let object = match (context.find(HARDWARE, &arguments.machine).await, arguments.machine.parse())
    {
        // A machine without Hardware has a history too: its requests.
        (Err(Error::Client(ClientError::Unknown { .. })), Ok(mac)) => {
            json!({ "metadata": { "name": unknown_machine(mac) } })
        }
        (found, _) => found?,
    };
    let mut printer = HistoryPrinter::new(context, &object);
    if arguments.follow {
        printer.since = beginning(context, &printer.name).await?;
        return printer.follow(arguments.timeout).await;
    }
    let (events, _) = context.client.list(&Path::collection(EVENT, &context.namespace), "").await?;
    printer.keep(&events).await?;
    let lines = history(printer.events);
    match context.printer.values(&lines) {
        Some(printed) => printed,
        None if lines.is_empty() => {
            context.printer.note(&format!("nothing has happened to {} yet", printer.name));
            Ok(())
        }
        None => {
            lines.iter().try_for_each(|line| context.printer.line(&shown(context, line)))?;
            if let Some(silence) = silence(&lines, Timestamp::now()) {
                let sentence = context.printer.toned(&silence.sentence(), Tone::Bad);
                context.printer.line(&format!("{:>10}  {sentence}", "now"))?;
            }
            table_of_times(context, &lines)
        }
    }
}

/// Returns the creation time of the machine's running workflow. Earlier events are ignored.
async fn beginning(context: &Context, machine: &str) -> Result<Timestamp, Error> {
    let workflows = context.list(WORKFLOW).await?;
    let running = workflows.into_iter().filter_map(|it| serde_json::from_value(it).ok());
    let running =
        running.filter(|it: &Workflow| it.spec.hardware_ref == machine && !it.status.state.ended());
    let created = running.filter_map(|it| it.metadata.creation_timestamp);
    Ok(created.max().unwrap_or(Timestamp::MIN))
}

struct HistoryPrinter<'a> {
    context: &'a Context,
    name: String,
    /// Name of the machine's BMC Machine.
    bmc: Option<String>,
    /// Names of known workflows; true for a workflow of this machine.
    workflows: BTreeMap<String, bool>,
    events: Vec<EventRecord>,
    /// Revisions of the Events whose lines are printed.
    printed: BTreeSet<u64>,
    /// Begin of the history; earlier events are ignored.
    since: Timestamp,
}

impl<'a> HistoryPrinter<'a> {
    fn new(context: &'a Context, object: &Value) -> HistoryPrinter<'a> {
        let hardware: Hardware = serde_json::from_value(object.clone()).unwrap_or_default();
        HistoryPrinter {
            context,
            name: name_of(object),
            bmc: hardware.spec.bmc_ref.map(|it| it.name),
            workflows: BTreeMap::new(),
            events: Vec::new(),
            printed: BTreeSet::new(),
            since: Timestamp::MIN,
        }
    }

    /// Stores the events of this machine, and ignores all others.
    async fn keep(&mut self, events: &[Value]) -> Result<(), Error> {
        for event in events.iter().filter_map(EventRecord::from_event) {
            if event.at >= self.since
                && self.events.len() < EVENTS_MAX
                && self.is_ours(&event).await?
            {
                self.events.push(event);
            }
        }
        Ok(())
    }

    async fn is_ours(&mut self, event: &EventRecord) -> Result<bool, Error> {
        match event.kind.as_str() {
            "Hardware" => Ok(event.name == self.name),
            "Machine" => Ok(self.bmc.as_ref() == Some(&event.name)),
            "Workflow" => {
                if let Some(ours) = self.workflows.get(&event.name) {
                    return Ok(*ours);
                }
                let path = self.context.path(WORKFLOW, &event.name);
                let object = self.context.client.get_if_any(&path).await?;
                let ours = object.is_some_and(|it| it["spec"]["hardwareRef"] == *self.name);
                self.workflows.insert(event.name.clone(), ours);
                Ok(ours)
            }
            _ => Ok(false),
        }
    }

    async fn follow(&mut self, limit: Duration) -> Result<(), Error> {
        let path = Path::collection(EVENT, &self.context.namespace);
        let mut changes = self.context.client.watch(path, String::new());
        let deadline = Instant::now() + limit;
        loop {
            let Ok(change) = timeout_at(deadline, changes.next()).await else {
                return Err(Error::too_late(format!("the history of {}", self.name), limit, None));
            };
            match change? {
                WatchEvent::Listed(events) => {
                    self.events.clear();
                    self.keep_if_reachable(&events).await?;
                }
                WatchEvent::Changed(event) => self.keep_if_reachable(&[event]).await?,
                WatchEvent::Deleted => continue,
                WatchEvent::Unreachable(why) => {
                    self.context.printer.note(&format!("{why}; waiting for the box"));
                    continue;
                }
            }
            if self.print_new()? {
                return Ok(());
            }
        }
    }

    /// Stores events as `keep` does, but tolerates an unreachable box until the next list.
    async fn keep_if_reachable(&mut self, events: &[Value]) -> Result<(), Error> {
        match self.keep(events).await {
            Err(error) if error.is_passing() => Ok(()),
            outcome => outcome,
        }
    }

    /// Prints the new events. Returns true if the machine has phoned home.
    fn print_new(&mut self) -> Result<bool, Error> {
        let printer = &self.context.printer;
        let lines = history(self.events.clone());
        let mut home = false;
        for line in &lines {
            if !self.printed.insert(line.revision) {
                continue;
            }
            match printer.format {
                Format::Table | Format::Wide => printer.line(&shown(self.context, line))?,
                _ => printer.line(&serde_json::to_string(line).unwrap_or_default())?,
            }
            match line.end() {
                Some(Outcome::PhonedHome) => home = true,
                Some(Outcome::Failed) => return Err(self.failure(line)),
                None => {}
            }
        }
        if home && printer.format.is_table() {
            table_of_times(self.context, &lines)?;
        }
        Ok(home)
    }

    fn failure(&self, line: &Line) -> Error {
        Error::Failed {
            what: format!("the work on {}", self.name),
            how: "failed",
            why: line.sentence.clone(),
            look: format!("hardware get {}", self.name),
        }
    }
}

fn shown(context: &Context, line: &Line) -> String {
    let offset = format!("{:>8.1} s", line.offset_millis as f64 / 1000.0);
    let sentence = if line.warning {
        context.printer.toned(&line.sentence, Tone::Bad)
    } else {
        line.sentence.clone()
    };
    format!("{offset}  {sentence}")
}

fn table_of_times(context: &Context, lines: &[Line]) -> Result<(), Error> {
    let spans = times(lines);
    if spans.is_empty() {
        return Ok(());
    }
    let mut table = Table::new(&["UNTIL", "TOOK", "SINCE THE BEGINNING"]);
    for span in spans {
        let cells = [span.label, stdx::seconds(span.millis), stdx::seconds(span.total_millis)];
        table.row(cells.map(Cell::from));
    }
    context.printer.line("")?;
    context.printer.table(table)
}
