//! `workflow retry`, `cancel`, `pause` and `resume`.

use api::tinkerbell::{CANCEL_REQUEST, RETRY_FROM, RETRY_REQUEST, RetryFrom, State, WORKFLOW};
use machine_actions::Action;
use serde_json::{Value, json};
use status::words;

use super::super::{Context, name_of};
use super::typed;
use crate::error::Error;
use crate::question::confirm::{Confirm, Reply};

/// Parses the value of `--from`: `failed` or `start`.
pub fn from(text: &str) -> Result<RetryFrom, String> {
    RetryFrom::parse(text).ok_or_else(|| "expected `failed` or `start`".to_owned())
}

/// Requests a retry of a workflow.
///
/// # Errors
/// The workflow has not failed, or the box refuses the request.
pub async fn retry(context: &Context, text: &str, from: Option<RetryFrom>) -> Result<(), Error> {
    let object = context.find(WORKFLOW, text).await?;
    let state = typed(&object)?.status.state;
    if !matches!(state, State::Failed | State::Timeout) {
        let hint = "a workflow that has not ended continues by itself; to repeat a workflow that \
            succeeded, create another workflow";
        return Err(unable("retry", &object, state, hint));
    }
    let patch = json!({ "metadata": { "annotations": {
        RETRY_REQUEST: id(),
        RETRY_FROM: from.map(RetryFrom::as_str),
    } } });
    ask(context, &object, &patch, "retry requested").await
}

/// Requests the cancellation of a workflow.
///
/// # Errors
/// The workflow has ended, or the box refuses.
pub async fn cancel(context: &Context, text: &str, confirm: Confirm) -> Result<(), Error> {
    let object = context.find(WORKFLOW, text).await?;
    let state = typed(&object)?.status.state;
    if state.ended() || state == State::Post {
        let hint = "`tinbox workflow delete` removes the workflow from the list";
        return Err(unable("cancel", &object, state, hint));
    }
    let description = Action::Cancel.description();
    let effect = format!("{}: {} {}", name_of(&object), description.effect, description.loss);
    if !confirm.agreed(&context.printer, &effect, Reply::Yes)? {
        return Ok(());
    }
    let patch = json!({ "metadata": { "annotations": { CANCEL_REQUEST: id() } } });
    ask(context, &object, &patch, "cancel requested").await
}

/// Pauses or resumes a workflow.
///
/// # Errors
/// The workflow has ended, or the box refuses.
pub async fn pause(context: &Context, text: &str, paused: bool) -> Result<(), Error> {
    let object = context.find(WORKFLOW, text).await?;
    let state = typed(&object)?.status.state;
    if paused && state.ended() {
        let hint = "no new action starts in a workflow that has ended";
        return Err(unable("pause", &object, state, hint));
    }
    // Taken away rather than set to false: then it is as if it had never been paused.
    let value = if paused { json!(true) } else { Value::Null };
    let word = if paused { "paused" } else { "resumed" };
    ask(context, &object, &json!({ "spec": { "paused": value } }), word).await
}

/// Returns a unique request id, so that the box handles the request only once.
fn id() -> String {
    stdx::random_hex(8)
}

async fn ask(context: &Context, object: &Value, patch: &Value, done: &str) -> Result<(), Error> {
    let path = context.path(WORKFLOW, &name_of(object));
    let object = context.client.patch(&path, patch).await?;
    context.printer.done(&object, done)
}

fn unable(verb: &str, object: &Value, state: State, hint: &str) -> Error {
    let why = format!("it is in state {}: {}", state.as_str(), words::workflow(state).text);
    Error::State {
        what: format!("{verb} workflow {}", name_of(object)),
        why,
        hint: hint.to_owned(),
    }
}
