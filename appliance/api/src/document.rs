//! The YAML of a rendered template (upstream: tink's `internal/workflow`).
//!
//! Unknown keys are ignored, with a warning. Every scalar keeps its raw text where a string is
//! wanted (`MODE: 0600` stays `0600`), and a key without a value is an empty text, as upstream's
//! decoder (`yaml.v3`) has it.

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
use tree::{Twice, Unreadable};

/// A rendered workflow document.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Document {
    /// Conventionally `0.1`; not checked.
    pub version: String,
    /// Name.
    pub name: String,
    /// Seconds; 0 means none.
    pub global_timeout: i64,
    /// Tasks, in order.
    pub tasks: Vec<Task>,
}

/// One task of a document.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Task {
    /// Name.
    pub name: String,
    /// The agent that runs it.
    pub worker: String,
    /// Binds of every action.
    pub volumes: Vec<String>,
    /// Environment of every action.
    pub environment: BTreeMap<String, String>,
    /// Actions, in order.
    pub actions: Vec<Action>,
}

/// One action of a document.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Action {
    /// Name.
    pub name: String,
    /// Image reference.
    pub image: String,
    /// Seconds; 0 means none.
    pub timeout: i64,
    /// Arguments.
    pub command: Vec<String>,
    /// Binds.
    pub volumes: Vec<String>,
    /// Environment.
    pub environment: BTreeMap<String, String>,
    /// Deprecated upstream: `host`.
    pub pid: String,
    /// Namespaces to share with the host.
    pub namespaces: Option<Namespaces>,
    /// How often it may fail and be begun again (upstream's v1alpha2 has this name).
    pub retries: i64,
    /// Seconds before the first of them; they double with each.
    pub retry_wait: i64,
    /// Arguments with which the image is run once after a failure.
    pub on_failure: Vec<String>,
    /// The same after its time was up.
    pub on_timeout: Vec<String>,
}

/// Why a rendered template is not a workflow.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// Not YAML, or not of this shape.
    #[error("the rendered template is not a workflow document: {0}")]
    Yaml(String),
    /// It breaks rules; all of them are listed.
    #[error("the rendered template breaks {} rule(s): {}", .0.len(), .0.join("; "))]
    Rules(Vec<String>),
}

/// Findings of a look at a template that is not rendered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lint {
    /// Reasons why no workflow can be made of the template.
    pub mistakes: Vec<String>,
    /// Keys that nothing reads.
    pub unknown: Vec<String>,
    /// Reason why the YAML could not be looked at.
    pub unread: Option<String>,
}

/// Reads a rendered template.
///
/// # Errors
/// [`DocumentError`], with every broken rule at once.
pub fn parse(text: &str) -> Result<Document, DocumentError> {
    parse_with_warnings(text).map(|(document, _)| document)
}

/// Reads a rendered template; also returns a sentence for each key that nothing reads.
///
/// # Errors
/// [`DocumentError`], with every broken rule at once.
pub fn parse_with_warnings(text: &str) -> Result<(Document, Vec<String>), DocumentError> {
    let tree = tree::read(text, Twice::Refuse).map_err(|error| {
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

/// Looks for mistakes in a template that is not rendered. Values that the template prints are not
/// known, and count as right.
pub fn lint(template: &str) -> Lint {
    let Some(skeleton) = skeleton::of(template) else {
        return Lint { unread: Some("an action has no end".to_owned()), ..Lint::default() };
    };
    let tree = match tree::read(&skeleton, Twice::KeepBoth) {
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
    /// The tasks as the status of a new workflow; `id` gives a fresh identifier each time.
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
