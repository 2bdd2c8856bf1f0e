//! The YAML of a rendered template (upstream: tink's `internal/workflow`).
//!
//! Unknown keys are ignored and every scalar keeps its raw text where a string is wanted
//! (`MODE: 0600` stays `0600`), as upstream's decoder does.

mod data;

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

pub use data::data;

use crate::tinkerbell::{ActionStatus, Namespaces, TaskStatus};

/// The most times one action is begun again.
const RETRIES_MAX: i64 = 10;
/// The longest wait before an action is begun again, in seconds.
const RETRY_WAIT_MAX: i64 = 3600;
/// The longest name of a workflow, task or action, in characters.
const NAME_CHARS_MAX: usize = 199;

/// A rendered workflow document.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
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
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
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
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
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
    #[serde(rename = "retry-wait")]
    pub retry_wait: i64,
    /// Arguments with which the image is run once after a failure.
    #[serde(rename = "on-failure")]
    pub on_failure: Vec<String>,
    /// The same after its time was up.
    #[serde(rename = "on-timeout")]
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

/// Read a rendered template.
///
/// # Errors
/// [`DocumentError`], with every broken rule at once.
pub fn parse(text: &str) -> Result<Document, DocumentError> {
    let document: Document =
        serde_saphyr::from_str(text).map_err(|error| DocumentError::Yaml(plain(&error)))?;
    let problems = document.problems();
    if problems.is_empty() { Ok(document) } else { Err(DocumentError::Rules(problems)) }
}

/// The decoder's words without the lines of the document, which may hold secrets.
fn plain(error: &serde_saphyr::Error) -> String {
    error.without_snippet().to_string()
}

impl Document {
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        check_name("name", &self.name, &mut problems);
        if self.tasks.is_empty() {
            problems.push("tasks: at least one is needed".to_owned());
        }
        let mut tasks = BTreeSet::new();
        for (at, task) in self.tasks.iter().enumerate() {
            let path = format!("tasks[{at}]");
            check_name(&format!("{path}.name"), &task.name, &mut problems);
            if !tasks.insert(&task.name) {
                problems.push(format!("{path}.name: {:?} is used twice", task.name));
            }
            if task.worker.is_empty() {
                problems.push(format!("{path}.worker: empty after rendering"));
            }
            task.check_actions(&path, &mut problems);
        }
        problems
    }

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

impl Task {
    fn check_actions(&self, path: &str, problems: &mut Vec<String>) {
        let mut names = BTreeSet::new();
        for (at, action) in self.actions.iter().enumerate() {
            let path = format!("{path}.actions[{at}]");
            check_name(&format!("{path}.name"), &action.name, problems);
            if !names.insert(&action.name) {
                problems.push(format!("{path}.name: {:?} is used twice", action.name));
            }
            if !is_image_reference(&action.image) {
                problems.push(format!("{path}.image: {:?} is no image reference", action.image));
            }
            if action.timeout < 0 {
                problems.push(format!("{path}.timeout: {} s is below zero", action.timeout));
            }
            if !(0..=RETRIES_MAX).contains(&action.retries) {
                let retries = action.retries;
                problems.push(format!("{path}.retries: {retries} is not 0 to {RETRIES_MAX}"));
            }
            if !(0..=RETRY_WAIT_MAX).contains(&action.retry_wait) {
                let wait = action.retry_wait;
                problems.push(format!("{path}.retry-wait: {wait} s is not 0 to {RETRY_WAIT_MAX}"));
            }
        }
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

fn check_name(path: &str, name: &str, problems: &mut Vec<String>) {
    let length = name.chars().count();
    if length == 0 || length > NAME_CHARS_MAX {
        problems.push(format!("{path}: {length} characters, 1 to {NAME_CHARS_MAX} are allowed"));
    }
}

/// `[registry[:port]/]path[:tag][@digest]` with the characters the distribution grammar allows.
fn is_image_reference(text: &str) -> bool {
    let (name, digest) = text.split_once('@').map_or((text, None), |(n, d)| (n, Some(d)));
    let digest_ok = digest.is_none_or(|digest| {
        digest.split_once(':').is_some_and(|(kind, hex)| !kind.is_empty() && hex.len() >= 32)
    });
    let (path, tag) = match name.rsplit_once(':') {
        Some((path, tag)) if !tag.contains('/') => (path, Some(tag)),
        _ => (name, None),
    };
    let word = |text: &str, more: &str| {
        !text.is_empty()
            && text
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "._-".contains(c) || more.contains(c))
    };
    digest_ok
        && tag.is_none_or(|tag| word(tag, "") && tag.len() <= 128)
        && path.split('/').enumerate().all(|(at, part)| word(part, if at == 0 { ":" } else { "" }))
}

#[cfg(test)]
mod tests;
