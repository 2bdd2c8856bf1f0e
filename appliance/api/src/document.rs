//! Parser of a rendered template, a YAML text (upstream: tink's `internal/workflow`).
//!
//! The parser ignores unknown keys, with a warning. A scalar in place of a string keeps its raw
//! text (`MODE: 0600` stays `0600`). A key without a value is an empty text, as in upstream's
//! decoder (`yaml.v3`).

mod data;
mod keys;
mod read;
mod rules;
mod skeleton;
mod tree;

use std::collections::BTreeMap;

pub use data::data;
pub use keys::{SETTINGS, repository};

use crate::tinkerbell::{ActionStatus, Namespaces, TaskStatus};
use tree::{DuplicateKeys, Unreadable};

/// Workflow document from a rendered template.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Document {
    /// Version, by convention `0.1`; not checked.
    pub version: String,
    /// Name of the workflow.
    pub name: String,
    /// Time limit of the workflow in seconds; 0 means none.
    pub global_timeout: i64,
    /// Tasks, in the order of execution.
    pub tasks: Vec<Task>,
}

/// Task of a workflow document.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Task {
    /// Name of the task.
    pub name: String,
    /// ID of the agent that runs the task.
    pub worker: String,
    /// Bind mounts of every action in the task.
    pub volumes: Vec<String>,
    /// Environment variables of every action in the task.
    pub environment: BTreeMap<String, String>,
    /// Actions, in the order of execution.
    pub actions: Vec<Action>,
}

/// Action of a workflow document.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Action {
    /// Name of the action.
    pub name: String,
    /// Reference of the container image.
    pub image: String,
    /// Time limit in seconds; 0 means none.
    pub timeout: i64,
    /// Arguments of the container.
    pub command: Vec<String>,
    /// Bind mounts of the action only. The agent mounts the task's volumes first.
    pub volumes: Vec<String>,
    /// Environment variables of the action. They override the task's variables.
    pub environment: BTreeMap<String, String>,
    /// PID namespace, deprecated upstream: `host` or empty.
    pub pid: String,
    /// Linux namespaces to share with the host.
    pub namespaces: Option<Namespaces>,
    /// Maximum number of repeats after a failure; default 0. (Key of upstream's v1alpha2.)
    pub retries: i64,
    /// Wait in seconds before the first repeat. The wait doubles with each further repeat.
    pub retry_wait: i64,
    /// Arguments for one more run of the image after a failure; empty means no such run.
    pub on_failure: Vec<String>,
    /// Arguments for one more run of the image after a timeout; empty means no such run.
    pub on_timeout: Vec<String>,
}

/// Reason why a rendered template is not a valid workflow.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// The text is not YAML, or the YAML does not have the required structure.
    #[error("the rendered template is not a workflow document: {0}")]
    Yaml(String),
    /// The document breaks rules; the list has a sentence for each broken rule.
    #[error("the rendered template breaks {} rule(s): {}", .0.len(), .0.join("; "))]
    Rules(Vec<String>),
}

/// Result of a check of a template before it is rendered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lint {
    /// Reasons why no workflow can be created from the template.
    pub mistakes: Vec<String>,
    /// Unknown keys, which the box ignores, as sentences.
    pub unknown: Vec<String>,
    /// Reason why the YAML could not be checked; `None` after a complete check.
    pub unread: Option<String>,
}

/// Parses a rendered template.
///
/// # Errors
/// The text is not YAML, or it breaks rules; [`DocumentError::Rules`] lists every broken rule.
pub fn parse(text: &str) -> Result<Document, DocumentError> {
    parse_with_warnings(text).map(|(document, _)| document)
}

/// Parses a rendered template; also returns a sentence for each unknown key.
///
/// # Errors
/// The text is not YAML, or it breaks rules; [`DocumentError::Rules`] lists every broken rule.
pub fn parse_with_warnings(text: &str) -> Result<(Document, Vec<String>), DocumentError> {
    let tree = tree::read(text, DuplicateKeys::Refuse).map_err(|error| {
        let Unreadable { line, why } = error;
        DocumentError::Yaml(format!("line {line}: {why}"))
    })?;
    let mut reading = read::document(&tree);
    let broken = rules::broken(&reading.document);
    let mut mistakes = std::mem::take(&mut reading.mistakes);
    mistakes.extend(broken.into_iter().filter_map(|it| it.sentence(&reading)));
    if mistakes.is_empty() {
        Ok((reading.document, reading.unknown))
    } else {
        Err(DocumentError::Rules(mistakes))
    }
}

/// Searches for mistakes in a template before it is rendered. Values from template actions
/// (`{{…}}`) are unknown and count as correct.
pub fn lint(template: &str) -> Lint {
    let Some(skeleton) = skeleton::of(template) else {
        return Lint {
            unread: Some("a template action has no closing }}".to_owned()),
            ..Lint::default()
        };
    };
    let tree = match tree::read(&skeleton, DuplicateKeys::KeepBoth) {
        Ok(tree) => tree,
        Err(Unreadable { line, why }) => {
            return Lint { unread: Some(format!("line {line}: {why}")), ..Lint::default() };
        }
    };
    let mut reading = read::document(&tree);
    let broken = rules::of_values(&reading.document).into_iter();
    let mut mistakes = std::mem::take(&mut reading.mistakes);
    mistakes.extend(broken.filter_map(|it| it.sentence(&reading)));
    Lint { mistakes, unknown: reading.unknown, unread: None }
}

impl Document {
    /// Converts the tasks for the status of a new workflow. `id` must return a new ID at each call.
    pub fn into_tasks(self, mut id: impl FnMut() -> String) -> Vec<TaskStatus> {
        self.tasks
            .into_iter()
            .map(|task| TaskStatus {
                id: id(),
                name: task.name,
                agent_id: task.worker,
                volumes: task.volumes,
                environment: task.environment,
                actions: task.actions.into_iter().map(|action| action.into_status(id())).collect(),
            })
            .collect()
    }
}

impl Action {
    fn into_status(self, id: String) -> ActionStatus {
        ActionStatus {
            id,
            name: self.name,
            image: self.image,
            timeout: self.timeout,
            command: self.command,
            volumes: self.volumes,
            pid: self.pid,
            namespaces: self.namespaces,
            environment: self.environment,
            retries: self.retries,
            retry_wait: self.retry_wait,
            on_failure: self.on_failure,
            on_timeout: self.on_timeout,
            ..ActionStatus::default()
        }
    }
}

#[cfg(test)]
mod tests;
