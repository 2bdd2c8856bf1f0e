//! Rules for a valid workflow document.

use std::collections::BTreeSet;

use super::read::ReadDocument;
use super::{Action, Document, Task};

/// Maximum value of `retries` of an action.
const RETRIES_MAX: i64 = 10;
/// Maximum `retry-wait` of an action, in seconds.
const RETRY_WAIT_MAX: i64 = 3600;
/// Maximum length of the name of a workflow, task or action, in characters.
const NAME_CHARS_MAX: usize = 199;

/// Rule that a value breaks: path of the value and reason.
#[derive(Debug)]
pub(super) struct BrokenRule {
    path: String,
    why: String,
}

impl BrokenRule {
    /// Returns a sentence with the value's line; `None` if the value is unknown or has a mistake.
    pub fn sentence(self, reading: &ReadDocument) -> Option<String> {
        let Self { path, why } = self;
        if reading.settled.contains(&path) {
            return None;
        }
        // A missing value gets the line of its parent.
        let line = std::iter::successors(Some(path.as_str()), |path| {
            path.rsplit_once('.').map(|(parent, _)| parent)
        });
        let line = line.chain([""]).find_map(|path| reading.lines.get(path));
        let line = line.map(|line| format!("line {line}: ")).unwrap_or_default();
        Some(format!("{line}{path}: {why}"))
    }
}

/// Returns all rules that a rendered document breaks.
pub(super) fn broken(document: &Document) -> Vec<BrokenRule> {
    let mut rules = Rules { all: true, broken: Vec::new() };
    rules.document(document);
    rules.broken
}

/// Returns broken rules about single values. Before rendering, names may be absent or repeated.
pub(super) fn of_values(document: &Document) -> Vec<BrokenRule> {
    let mut rules = Rules { all: false, broken: Vec::new() };
    rules.document(document);
    rules.broken
}

struct Rules {
    all: bool,
    broken: Vec<BrokenRule>,
}

impl Rules {
    fn push(&mut self, path: impl Into<String>, why: impl Into<String>) {
        self.broken.push(BrokenRule { path: path.into(), why: why.into() });
    }

    fn document(&mut self, document: &Document) {
        self.name("name", &document.name);
        if self.all && document.tasks.is_empty() {
            self.push("tasks", "at least one is required");
        }
        let mut names = BTreeSet::new();
        for (at, task) in document.tasks.iter().enumerate() {
            let path = format!("tasks[{at}]");
            self.unique_name(&path, &task.name, &mut names);
            if self.all && task.worker.is_empty() {
                self.push(format!("{path}.worker"), "empty after rendering");
            }
            self.task(&path, task);
        }
    }

    fn task(&mut self, path: &str, task: &Task) {
        let mut names = BTreeSet::new();
        for (at, action) in task.actions.iter().enumerate() {
            let path = format!("{path}.actions[{at}]");
            self.unique_name(&path, &action.name, &mut names);
            self.action(&path, action);
        }
    }

    fn action(&mut self, path: &str, action: &Action) {
        if (self.all || !action.image.is_empty()) && !is_image_reference(&action.image) {
            let image = &action.image;
            self.push(format!("{path}.image"), format!("{image:?} is not an image reference"));
        }
        if action.timeout < 0 {
            let why = format!("{} s is below zero", action.timeout);
            self.push(format!("{path}.timeout"), why);
        }
        if !(0..=RETRIES_MAX).contains(&action.retries) {
            let why = format!("{} is not 0 to {RETRIES_MAX}", action.retries);
            self.push(format!("{path}.retries"), why);
        }
        if !(0..=RETRY_WAIT_MAX).contains(&action.retry_wait) {
            let why = format!("{} s is not 0 to {RETRY_WAIT_MAX}", action.retry_wait);
            self.push(format!("{path}.retry-wait"), why);
        }
    }

    fn unique_name<'a>(&mut self, path: &str, name: &'a str, names: &mut BTreeSet<&'a str>) {
        let path = format!("{path}.name");
        self.name(&path, name);
        if self.all && !names.insert(name) {
            self.push(path, format!("{name:?} is used twice"));
        }
    }

    fn name(&mut self, path: &str, name: &str) {
        let length = name.chars().count();
        if length > NAME_CHARS_MAX || (self.all && length == 0) {
            let why = format!("{length} characters, 1 to {NAME_CHARS_MAX} are allowed");
            self.push(path, why);
        }
    }
}

/// Returns true for `[registry[:port]/]path[:tag][@digest]` with the characters of OCI references.
pub(super) fn is_image_reference(text: &str) -> bool {
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
