//! `docs/explanation/workflow-states.md`: the diagram of a workflow's states.

use crate::page::head;

const ABOUT: &str = "\
The diagram is the table of `api::state::workflow`. Each arrow is an event that moves the \
workflow; an event without an arrow changes nothing.";

const STATES: &str = "
| state | meaning |
|---|---|
| `PREPARING` | the machine is being brought to boot from the network |
| `PENDING` | ready; no action has begun |
| `RUNNING` | the agent works |
| `POST` | all actions are done; the machine is brought to its final boot settings |
| `SUCCESS` | every action succeeded |
| `FAILED` | an action or the preparation failed |
| `TIMEOUT` | an action or the workflow ran out of time |

[Retry, cancel and pause](../how-to/retry-cancel-pause.md) a workflow.
";

/// Returns the page as Markdown text.
pub fn page() -> String {
    let diagram = api::state::workflow::diagram();
    format!("{}\n```mermaid\n{diagram}```\n{STATES}", head("Workflow states", ABOUT))
}
