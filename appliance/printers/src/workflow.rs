//! Workflow as text: its actions as rows of a table, and the reason of its end.

use api::tinkerbell::{ActionState, ActionStatus, State, Workflow};
use jiff::Timestamp;
use serde::Serialize;
use status::plain;
use status::words;

use crate::table::{Cell, Table, line};

/// Column with the agent, which only the wide table has.
const WORKER: &str = "WORKER ID";
/// Columns, as in `tink workflow events`.
const HEADINGS: [&str; 6] = [WORKER, "TASK", "ACTION", "EXECUTION TIME", "MESSAGE", "STATUS"];
/// Column width in characters for messages that are not known yet.
const MESSAGE_WIDTH: usize = 24;

/// Row of an action that has begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// ID of the agent.
    pub worker_id: String,
    /// Name of the task.
    pub task: String,
    /// Name of the action.
    pub action: String,
    /// Formatted duration; empty if unknown.
    pub execution_time: String,
    /// Message of the agent.
    pub message: String,
    /// State of the action.
    pub status: ActionState,
}

/// Returns the rows of the actions that have begun, in order.
pub fn rows(workflow: &Workflow, now: Timestamp) -> Vec<Row> {
    let mut rows = Vec::new();
    for task in &workflow.status.tasks {
        for action in task.actions.iter().filter(|it| it.state != ActionState::Pending) {
            rows.push(Row {
                worker_id: plain(&task.agent_id),
                task: plain(&task.name),
                action: plain(&action.name),
                execution_time: time(action, now),
                message: plain(&action.message),
                status: action.state,
            });
        }
    }
    rows
}

fn time(action: &ActionStatus, now: Timestamp) -> String {
    let running = action.state == ActionState::Running;
    let stop = action.execution_stop.or(running.then_some(now));
    match (action.execution_start, stop) {
        (Some(start), Some(stop)) => {
            let millis = stop.duration_since(start).as_millis();
            stdx::seconds(u64::try_from(millis).unwrap_or_default())
        }
        _ => plain(&action.execution_duration),
    }
}

impl Row {
    fn cells(&self) -> [Cell; 6] {
        [
            self.worker_id.clone().into(),
            self.task.clone().into(),
            self.action.clone().into(),
            self.execution_time.clone().into(),
            self.message.clone().into(),
            Cell::word(words::action(self.status)),
        ]
    }
}

/// Returns rows as a table; only the wide table has the agent.
pub fn table(rows: &[Row]) -> Table {
    let mut table = Table::new(&HEADINGS).with_details(&[WORKER]);
    for row in rows {
        table.row(row.cells());
    }
    table
}

/// Returns the progress of a workflow as a table of one row, as `tink workflow state`.
pub fn state(workflow: &Workflow) -> Table {
    let columns = ["WORKFLOW", "PROGRESS", "TASK", "ACTION", "WORKER", "ACTION STATE"];
    let status = &workflow.status;
    let actions = || status.tasks.iter().flat_map(|task| &task.actions);
    let done = actions().filter(|it| it.state == ActionState::Success).count();
    let percent = done * 100 / actions().count().max(1);
    let current = status.current_state.clone().unwrap_or_default();
    let mut table = Table::new(&columns);
    table.row([
        plain(&workflow.metadata.name).into(),
        format!("{percent} %").into(),
        plain(&current.task_name).into(),
        plain(&current.action_name).into(),
        plain(&current.agent_id).into(),
        Cell::word(words::action(current.state)),
    ]);
    table
}

/// Formats rows one after the other, in columns wide enough for all later rows of the workflow.
#[derive(Debug)]
pub struct Feed {
    /// Number of leading columns that are left out.
    hidden: usize,
    widths: Vec<usize>,
    shown: Vec<Row>,
}

impl Feed {
    /// Creates the formatter; with the column of the agent if `is_wide`.
    pub fn new(is_wide: bool) -> Self {
        Self { hidden: usize::from(!is_wide), widths: Vec::new(), shown: Vec::new() }
    }

    /// Returns the lines for the new rows of `workflow`; headings come before the first row.
    pub fn lines(&mut self, workflow: &Workflow, now: Timestamp) -> Vec<String> {
        self.news(workflow, now)
            .into_iter()
            .flat_map(|row| {
                let heading = self.widths.is_empty().then(|| self.head(workflow));
                heading.into_iter().chain([self.line(&row.cells())])
            })
            .collect()
    }

    /// Returns the rows whose state is new since the last call: each begin and end of an action.
    pub fn news(&mut self, workflow: &Workflow, now: Timestamp) -> Vec<Row> {
        let rows = rows(workflow, now);
        let mut news = Vec::new();
        for (at, row) in rows.iter().enumerate() {
            let known = self.shown.get(at).is_some_and(|shown| {
                (&shown.task, &shown.action, shown.status) == (&row.task, &row.action, row.status)
            });
            if !known {
                news.push(row.clone());
            }
        }
        self.shown = rows;
        news
    }

    fn head(&mut self, workflow: &Workflow) -> String {
        let mut all = Table::new(&HEADINGS);
        for task in &workflow.status.tasks {
            for action in &task.actions {
                let widest = " ".repeat(MESSAGE_WIDTH);
                let (agent, task) = (plain(&task.agent_id), plain(&task.name));
                let cells =
                    [agent, task, plain(&action.name), String::new(), widest, String::new()];
                all.row(cells.map(Cell::from));
            }
        }
        self.widths = all.widths();
        self.line(&HEADINGS.map(Cell::from))
    }

    fn line(&self, cells: &[Cell]) -> String {
        line(&cells[self.hidden..], &self.widths[self.hidden..], false)
    }
}

/// Prefix of the message of an action that waits for another server.
const WAITING: &str = "waiting: ";

/// Returns the action that waits for another server, with the reason; `None` if no action waits.
pub fn waiting(workflow: &Workflow) -> Option<String> {
    let mut actions = workflow.status.tasks.iter().flat_map(|task| &task.actions);
    let waits = |action: &&ActionStatus| {
        action.state == ActionState::Running && action.message.starts_with(WAITING)
    };
    let action = actions.find(waits)?;
    Some(format!("{}: {}", plain(&action.name), plain(&action.message)))
}

/// Returns the reason why a workflow did not succeed, as a phrase.
pub fn why(workflow: &Workflow) -> String {
    let status = &workflow.status;
    if let Some(ended) = status.ended.as_ref().filter(|ended| !ended.message.is_empty()) {
        return plain(&ended.message);
    }
    let actions = status.tasks.iter().flat_map(|task| &task.actions);
    let bad =
        |action: &&ActionStatus| matches!(action.state, ActionState::Failed | ActionState::Timeout);
    if let Some(action) = actions.clone().find(bad) {
        let message = match (plain(&action.message), action.state) {
            (message, _) if !message.is_empty() => message,
            (_, ActionState::Timeout) => format!("timed out after {} s", action.timeout),
            _ => "the agent gave no reason".to_owned(),
        };
        return format!("action {}: {message}", plain(&action.name));
    }
    if status.state == State::Timeout && status.global_timeout > 0 {
        return format!("the workflow timed out after {} s", status.global_timeout);
    }
    let trouble = status
        .conditions
        .iter()
        .rev()
        .find(|it| it.reason == "Error" || it.kind.ends_with("Failed") && it.status == "True");
    match trouble {
        Some(condition) => plain(&condition.message),
        None => "the box gave no reason".to_owned(),
    }
}

#[cfg(test)]
mod tests;
