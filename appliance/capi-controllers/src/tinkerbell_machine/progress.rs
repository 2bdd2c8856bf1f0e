//! Progress of an installation, from its Workflow.

use std::time::Duration;

use api::tinkerbell::{ActionState, State, Workflow};
use jiff::{SignedDuration, Timestamp};

/// Progress of an installation in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// Text for the column of the state, such as `Running 2/5`.
    pub state: String,
    /// Reason for the conditions `Ready` and `Installed`.
    pub reason: &'static str,
    /// Description for a person, one or two sentences.
    pub message: String,
}

/// Maximum length in characters of the text of a Workflow in a message.
const QUOTE_CHARS_MAX: usize = 1024;

/// Age of a Workflow from which its progress is reported. The states of the first moment would each
/// need a write, and the status says already that the installation begins.
pub const REPORT_AFTER: Duration = Duration::from_secs(2);

/// Returns true for a Workflow whose progress is not reported yet. A Workflow with a time in the
/// future is not new: the clock was set back.
pub fn is_new_workflow(workflow: &Workflow, now: Timestamp) -> bool {
    let age = workflow.metadata.creation_timestamp.map(|at| now.duration_since(at));
    let limit = SignedDuration::try_from(REPORT_AFTER).unwrap_or(SignedDuration::ZERO);
    age.is_some_and(|age| !age.is_negative() && age < limit)
}

/// Returns the progress of a Workflow that has not succeeded. `what` names its purpose, such as
/// `installation`.
pub fn progress(workflow: &Workflow, what: &str) -> Progress {
    let (status, key) = (&workflow.status, workflow.key());
    let actions: Vec<_> = status.tasks.iter().flat_map(|task| &task.actions).collect();
    let done = actions.iter().filter(|action| action.state == ActionState::Success).count();
    let count = format!("{}/{}", (done + 1).min(actions.len()), actions.len());
    let (state, reason, message) = match status.state {
        State::Failed | State::Timeout => {
            let why = status.ended.as_ref().map_or_else(String::new, |it| quote(&it.message));
            let message = format!(
                "the Workflow {key} failed: {why}; correct the cause, then repeat the \
                 {what} with: tinbox workflow retry {} -n {}",
                key.name, key.namespace
            );
            ("Failed".to_owned(), "WorkflowFailed", message)
        }
        State::Running => {
            let action = actions.get(done).map_or("", |action| &action.name);
            let message = format!("the Workflow {key} runs the action {count}: {}", quote(action));
            (format!("Running {count}"), "Installing", message)
        }
        State::Post | State::Success => {
            ("Post".to_owned(), "Installing", format!("the Workflow {key} ends"))
        }
        State::New | State::Preparing => {
            let message = format!("the box prepares the network boot of the Workflow {key}");
            ("Preparing".to_owned(), "Installing", message)
        }
        State::Pending => {
            let message = match workflow.spec.boot_options.boot_mode {
                Some(_) => format!("the Workflow {key} waits for the agent of the machine"),
                None => format!(
                    "the Workflow {key} waits for the agent of the machine; the Hardware has no \
                     BMC, so switch the machine on, or restart it with network boot"
                ),
            };
            ("Pending".to_owned(), "WaitingForAgent", message)
        }
    };
    let waits = status.queued().map(quote);
    let bmc = status.bmc_error().filter(|_| !status.state.ended());
    let message = match (waits, bmc) {
        (Some(waits), _) => waits,
        (None, Some(error)) => format!("{message}; error of the BMC: {}", quote(error)),
        (None, None) => message,
    };
    Progress { state, reason, message }
}

fn quote(text: &str) -> String {
    text.chars().take(QUOTE_CHARS_MAX).collect()
}
