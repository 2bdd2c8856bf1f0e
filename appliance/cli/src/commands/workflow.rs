//! `workflow`: templates running on machines.

mod create;
pub mod follow;
mod request;
pub mod variables;

use std::time::Duration;

use api::tinkerbell::{RetryFrom, WORKFLOW, Workflow};
use box_client::decode;
use jiff::Timestamp;
use printers::workflow as rows;
use serde_json::Value;
use status::plain;

use super::{Context, name_of};
use crate::duration::duration;
use crate::error::Error;
use crate::output::{Cell, Table, age, text};
use crate::question::confirm::Confirm;

/// Run and manage workflows
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Run a template on a machine
    ///
    /// A machine with a BMC is powered off, set to boot once from the network, and powered on.
    /// A machine without a BMC must be switched on by hand.
    /// Example: `tinbox workflow create --template debian --hardware nuc1 --wait`
    #[command(verbatim_doc_comment)]
    Create(create::Arguments),
    /// List workflows. Example: `tinbox workflow list`
    #[command(alias = "ls")]
    List,
    /// Show one workflow. Example: `tinbox workflow get nuc1-x7k2p`
    Get {
        /// Name or id of the workflow
        #[arg(value_name = "NAME|ID")]
        workflow: String,
    },
    /// Show the actions that a workflow has begun
    ///
    /// With --follow, waits for the end of the workflow; the exit code is 0 if the workflow
    /// succeeded. Example: `tinbox workflow events nuc1-x7k2p --follow`
    #[command(verbatim_doc_comment)]
    Events {
        /// Name or id of the workflow
        #[arg(value_name = "NAME|ID")]
        workflow: String,
        /// Print each begin and end of an action until the workflow ends
        #[arg(short, long)]
        follow: bool,
        /// Stop following after this time, such as 90s, 5m or 1h. The workflow continues, and a
        /// restart of the box does not end the command
        #[arg(long, value_name = "TIME", default_value = "1h", value_parser = duration)]
        timeout: Duration,
    },
    /// Show the progress of a workflow in one row, as older Tinkerbell
    #[command(hide = true)]
    State {
        /// Name or id of the workflow
        #[arg(value_name = "NAME|ID")]
        workflow: String,
    },
    /// Retired: the workflow has its data
    #[command(hide = true)]
    Data {
        /// Name or id of the workflow
        #[arg(value_name = "NAME|ID")]
        workflow: String,
    },
    /// Retry a failed or timed-out workflow
    ///
    /// If the agent of the machine is gone, the machine is booted again through its BMC. A machine
    /// that the workflow does not boot (no BMC, or --no-boot) must be booted by hand.
    /// Example: `tinbox workflow retry nuc1-x7k2p --from start`
    #[command(verbatim_doc_comment)]
    Retry {
        /// Name or id of the workflow
        #[arg(value_name = "NAME|ID")]
        workflow: String,
        /// First action of the retry: the failed action, or the first of the workflow [default:
        /// spec.retry.from of the workflow, else failed]
        #[arg(long, value_name = "failed|start", value_parser = request::from)]
        from: Option<RetryFrom>,
    },
    /// Cancel a workflow and stop its running action
    ///
    /// Data that was already written stays. Example: `tinbox workflow cancel nuc1-x7k2p`
    #[command(verbatim_doc_comment)]
    Cancel {
        /// Name or id of the workflow
        #[arg(value_name = "NAME|ID")]
        workflow: String,
        #[command(flatten)]
        confirm: Confirm,
    },
    /// Pause a workflow after its running action
    ///
    /// Example: `tinbox workflow pause nuc1-x7k2p`
    #[command(verbatim_doc_comment)]
    Pause {
        /// Name or id of the workflow
        #[arg(value_name = "NAME|ID")]
        workflow: String,
    },
    /// Resume a paused workflow. Example: `tinbox workflow resume nuc1-x7k2p`
    Resume {
        /// Name or id of the workflow
        #[arg(value_name = "NAME|ID")]
        workflow: String,
    },
    /// Delete workflows, including running ones: a Tinbox agent stops the running action. Example:
    /// `tinbox workflow delete a b`
    #[command(alias = "rm")]
    Delete {
        /// Names or ids of the workflows
        #[arg(required = true, value_name = "NAME|ID")]
        workflows: Vec<String>,
        #[command(flatten)]
        confirm: Confirm,
    },
}

/// Runs the command.
///
/// # Errors
/// A request fails. With `--wait` or `--follow` also if the workflow fails.
pub async fn run(context: &Context, command: Command) -> Result<(), Error> {
    match command {
        Command::Create(arguments) => create::run(context, arguments).await,
        Command::List => {
            let list = context.list(WORKFLOW).await?;
            context.printer.objects(list.clone(), table)?;
            notes(&list).iter().for_each(|note| context.printer.note(note));
            Ok(())
        }
        Command::Get { workflow } => context.show(WORKFLOW, &workflow).await,
        Command::Events { workflow, follow, timeout } => {
            let object = context.find(WORKFLOW, &workflow).await?;
            if follow {
                return follow::until_end(context, &name_of(&object), timeout, true).await;
            }
            let rows = rows::rows(&typed(&object)?, Timestamp::now());
            match context.printer.values(&rows) {
                Some(printed) => printed,
                None => context.printer.table(rows::table(&rows)),
            }
        }
        Command::State { workflow } => {
            let workflow = typed(&context.find(WORKFLOW, &workflow).await?)?;
            context.printer.table(rows::state(&workflow))
        }
        Command::Data { .. } => Err(Error::Retired("tinbox workflow get NAME -o yaml")),
        Command::Retry { workflow, from } => request::retry(context, &workflow, from).await,
        Command::Cancel { workflow, confirm } => request::cancel(context, &workflow, confirm).await,
        Command::Pause { workflow } => request::pause(context, &workflow, true).await,
        Command::Resume { workflow } => request::pause(context, &workflow, false).await,
        Command::Delete { workflows, confirm } => {
            context.delete(WORKFLOW, &workflows, confirm, effect).await
        }
    }
}

/// Describes the deletion of a workflow.
fn effect(object: &Value) -> String {
    let (name, workflow) = (name_of(object), typed(object).unwrap_or_default());
    let state = workflow.status.state;
    let word = status::words::workflow(state).text;
    let what = if state.ended() {
        "it disappears from the list"
    } else {
        "it ends, and its running action stops; a disk that was being written does not boot"
    };
    format!("{name} ({word}): {what}")
}

fn typed(object: &Value) -> Result<Workflow, Error> {
    Ok(decode(&format!("read workflow/{}", name_of(object)), object.clone())?)
}

fn table(items: &[Value], now: Timestamp) -> Table {
    let mut table = Table::new(&["NAME", "STATE", "TEMPLATE", "HARDWARE", "ACTION", "AGE", "ID"])
        .with_details(&["ID"]);
    for item in items {
        let workflow = typed(item).unwrap_or_default();
        let (state, tone) = status::words::progress(&workflow.status);
        let current = workflow.status.current_state.as_ref();
        let mut action = current.map(|it| plain(&it.action_name)).unwrap_or_default();
        if rows::waiting(&workflow).is_some() {
            action.push_str(" (waiting)");
        }
        table.row([
            Cell::from(name_of(item)),
            Cell::toned(state, tone),
            text(item, "/spec/templateRef").into(),
            text(item, "/spec/hardwareRef").into(),
            if action.is_empty() { "-".into() } else { action.into() },
            age(item, now).into(),
            text(item, "/metadata/uid").into(),
        ]);
    }
    table
}

/// Returns the reasons why workflows wait, one per line.
fn notes(items: &[Value]) -> Vec<String> {
    let waiting = items.iter().filter_map(|item| {
        let why = rows::waiting(&typed(item).ok()?)?;
        Some(format!("{}: {why}", name_of(item)))
    });
    waiting.collect()
}

#[cfg(test)]
mod tests {
    use super::table;
    use serde_json::json;

    #[test]
    fn the_list() {
        let item = |name: &str, status: serde_json::Value| {
            json!({
                "metadata": {
                    "name": name,
                    "uid": format!("uid-{name}"),
                    "creationTimestamp": "2026-01-01T00:00:00Z",
                },
                "spec": { "templateRef": "debian", "hardwareRef": "nuc1" },
                "status": status,
            })
        };
        let running = json!({
            "state": "RUNNING",
            "currentState": { "actionName": "stream-image", "state": "RUNNING" },
        });
        let waits = json!({
            "state": "RUNNING",
            "currentState": { "actionName": "pull", "state": "RUNNING" },
            "tasks": [{ "actions": [
                { "name": "pull", "state": "RUNNING", "message": "waiting: no registry" },
            ]}],
        });
        let queued = json!({
            "state": "PREPARING",
            "conditions": [
                { "type": "Waiting", "status": "True", "message": "queued behind nuc1-d" },
            ],
        });
        let items = [
            item("nuc1-a", running),
            item("nuc1-b", json!({ "state": "TIMEOUT" })),
            item("nuc1-c", json!({})),
            item("nuc1-d", waits),
            item("nuc1-e", queued),
        ];
        let now = "2026-01-01T03:00:00Z".parse().unwrap();
        golden::check("workflow-list.txt", &table(&items, now).render(false));
        assert_eq!(super::notes(&items), ["nuc1-d: pull: waiting: no registry"]);
    }
}
