//! Follows a workflow until it ends, across restarts of the box.

use std::time::Duration;

use api::tinkerbell::{ActionState, State, WORKFLOW, Workflow};
use box_client::{Path, WatchEvent};
use jiff::Timestamp;
use printers::workflow::{Feed, why};
use serde_json::Value;
use status::plain;
use status::progress::Progress;
use status::words;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until, timeout};

use super::super::Context;
use super::typed;
use crate::error::Error;
use crate::output::{Bar, Format};

/// Interval of progress requests.
const PROGRESS_EVERY: Duration = Duration::from_millis(500);
/// Maximum wait for a progress response, so that events of the workflow are not delayed.
const PROGRESS_WAIT: Duration = Duration::from_secs(2);

/// Shows the workflow `name` until it ends. With `rows`, also prints each begin or end of an
/// action.
///
/// # Errors
/// The workflow fails, times out or is deleted, or does not end within `limit`.
pub async fn until_end(
    context: &Context,
    name: &str,
    limit: Duration,
    rows: bool,
) -> Result<(), Error> {
    let collection = Path::collection(WORKFLOW, &context.namespace);
    let mut changes = context.client.watch(collection, format!("metadata.name={name}"));
    let mut view = View {
        context,
        name,
        rows,
        feed: Feed::new(context.printer.format == Format::Wide),
        bar: context.printer.bar(),
        state: None,
        doing: String::new(),
        action: String::new(),
        action_id: String::new(),
    };
    let deadline = Instant::now() + limit;
    let mut tick = interval(PROGRESS_EVERY);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            change = changes.next() => {
                if view.take(change?)? {
                    return Ok(());
                }
            }
            _ = tick.tick(), if view.state == Some(State::Running) => view.poll().await,
            () = sleep_until(deadline) => {
                let longer = format!("workflow events {name} --follow");
                return Err(Error::too_late(format!("workflow {name}"), limit, Some(longer)));
            }
        }
    }
}

struct View<'a> {
    context: &'a Context,
    name: &'a str,
    rows: bool,
    feed: Feed,
    bar: Bar,
    state: Option<State>,
    /// State and action as last shown.
    doing: String,
    /// Name of the running action; empty if none runs.
    action: String,
    /// Id of the running action.
    action_id: String,
}

impl View<'_> {
    /// Handles a watch event. Returns true if the workflow has succeeded.
    fn take(&mut self, change: WatchEvent) -> Result<bool, Error> {
        match change {
            WatchEvent::Listed(items) => match items.first() {
                Some(object) => self.show(object),
                None => Err(self.deleted()),
            },
            WatchEvent::Changed(object) => self.show(&object),
            WatchEvent::Deleted => Err(self.deleted()),
            WatchEvent::Unreachable(why) => {
                self.bar.note(&format!("{why}; waiting for the box"));
                // Tell the state again when the box is back.
                (self.state, self.doing) = (None, String::new());
                Ok(false)
            }
        }
    }

    fn show(&mut self, object: &Value) -> Result<bool, Error> {
        let workflow = typed(object)?;
        if self.rows {
            self.print(&workflow)?;
        }
        let state = workflow.status.state;
        let (action, action_id) = running(&workflow);
        let doing = format!("{} {action}", words::progress(&workflow.status).0);
        if !state.ended() && self.doing != doing {
            self.bar.note(&format!("workflow {}: {}", self.name, doing.trim_end()));
            self.doing = doing;
        }
        self.state = Some(state);
        (self.action, self.action_id) = (action, action_id);
        if !state.ended() {
            return Ok(false);
        }
        self.bar.clear();
        let what = format!("workflow {}", self.name);
        if state == State::Success {
            let line = format!("{what} succeeded after {}", took(&workflow));
            match (self.rows, self.context.printer.format) {
                (false, Format::Table | Format::Wide) => self.context.printer.line(&line)?,
                (false, _) => self.context.printer.object(object)?,
                (true, _) => self.context.printer.note(&line),
            }
            return Ok(true);
        }
        let look = if self.rows { "workflow get" } else { "workflow events" };
        Err(Error::Failed {
            what,
            how: words::workflow(state).text,
            why: why(&workflow),
            look: format!("{look} {}", self.name),
        })
    }

    fn print(&mut self, workflow: &Workflow) -> Result<(), Error> {
        let now = Timestamp::now();
        let printer = &self.context.printer;
        let lines = match printer.format {
            Format::Table | Format::Wide | Format::Name => self.feed.lines(workflow, now),
            Format::Json | Format::Yaml => {
                let news = self.feed.news(workflow, now);
                news.iter().filter_map(|row| serde_json::to_string(row).ok()).collect()
            }
        };
        lines.iter().try_for_each(|line| self.bar.line(printer, line))
    }

    /// Requests and shows the progress of the running action, if the box has it.
    async fn poll(&mut self) {
        let path = Path::progress(&self.context.namespace, self.name);
        let answer = timeout(PROGRESS_WAIT, self.context.client.get_if_any(&path)).await;
        if let Ok(Ok(Some(value))) = answer
            && let Ok(mut progress) = serde_json::from_value::<Progress>(value)
            && (progress.action == self.action || progress.action == self.action_id)
        {
            // People know the action by its name.
            progress.action.clone_from(&self.action);
            self.bar.show(&progress);
        }
    }

    fn deleted(&self) -> Error {
        Error::Failed {
            what: format!("workflow {}", self.name),
            how: "was deleted",
            why: "it is no longer on the box".to_owned(),
            look: "workflow list".to_owned(),
        }
    }
}

/// Returns name and id of the running action; if no action runs, the error of the BMC, if any.
fn running(workflow: &Workflow) -> (String, String) {
    let mut actions = workflow.status.tasks.iter().flat_map(|task| &task.actions);
    let running = actions.find(|action| action.state == ActionState::Running);
    let error = workflow.status.bmc_error().map(|it| (format!("({})", plain(it)), String::new()));
    running.map(|it| (plain(&it.name), it.id.clone())).or(error).unwrap_or_default()
}

/// Returns the time from the workflow's creation to the end of its last action, as text.
fn took(workflow: &Workflow) -> String {
    let actions = workflow.status.tasks.iter().flat_map(|task| &task.actions);
    let end = actions.filter_map(|action| action.execution_stop).max();
    let start = workflow.metadata.creation_timestamp;
    let (Some(start), Some(end)) = (start, end) else { return "an unknown time".to_owned() };
    let millis = end.duration_since(start).as_millis();
    stdx::seconds(u64::try_from(millis).unwrap_or_default())
}
