//! Conversion of YAML to a document. Wrong types and unknown keys are reported as sentences.

use std::collections::{BTreeMap, BTreeSet};

use super::keys::{self, Level};
use super::skeleton::HOLE;
use super::tree::{Node, Value, shown};
use super::{Action, Document, Task};
use crate::tinkerbell::Namespaces;

/// Maximum number of mistakes, and of unknown keys, that are reported.
const SENTENCES_MAX: usize = 32;
/// Maximum number of environment variables of a document that are compared with [`keys::SETTINGS`].
const COMPARISONS_MAX: usize = 512;

/// Parsed document with the mistakes that the parser found.
#[derive(Debug, Default)]
pub(super) struct ReadDocument {
    pub document: Document,
    /// Values of a wrong type, as sentences.
    pub mistakes: Vec<String>,
    /// Unknown keys, as sentences.
    pub unknown: Vec<String>,
    /// Line of each value, by the value's path.
    pub lines: BTreeMap<String, usize>,
    /// Paths of values that are unknown before rendering, or have a mistake already.
    pub settled: BTreeSet<String>,
    /// Number of environment variables compared so far.
    compared: usize,
}

/// Converts a YAML tree to a document. [`HOLE`] marks values that are unknown before rendering.
pub(super) fn document(tree: &Node) -> ReadDocument {
    let mut reading = ReadDocument::default();
    let mut document = Document::default();
    for (key, node) in reading.map(tree, "", Level::Document) {
        match key {
            "version" => document.version = reading.text(node, key),
            "name" => document.name = reading.text(node, key),
            "global_timeout" => document.global_timeout = reading.number(node, key),
            "tasks" => {
                let items = reading.list(node, key);
                document.tasks = items.iter().map(|(path, it)| reading.task(it, path)).collect();
            }
            _ => {}
        }
    }
    reading.document = document;
    reading
}

impl ReadDocument {
    fn task(&mut self, node: &Node, path: &str) -> Task {
        let mut task = Task::default();
        let mut settings = Vec::new();
        for (key, node) in self.map(node, path, Level::Task) {
            let path = format!("{path}.{key}");
            match key {
                "name" => task.name = self.text(node, &path),
                "worker" => task.worker = self.text(node, &path),
                "volumes" => task.volumes = self.texts(node, &path),
                "environment" => {
                    task.environment = self.pairs(node, &path);
                    settings.push((path, node));
                }
                "actions" => {
                    let items = self.list(node, &path);
                    task.actions = items.iter().map(|(path, it)| self.action(it, path)).collect();
                }
                _ => {}
            }
        }
        let images: Vec<&str> = task.actions.iter().map(|action| action.image.as_str()).collect();
        for (path, node) in settings {
            self.check_settings(node, &path, &images);
        }
        task
    }

    fn action(&mut self, node: &Node, path: &str) -> Action {
        let mut action = Action::default();
        let mut settings = None;
        for (key, node) in self.map(node, path, Level::Action) {
            let path = format!("{path}.{key}");
            match key {
                "name" => action.name = self.text(node, &path),
                "image" => action.image = self.text(node, &path),
                "timeout" => action.timeout = self.number(node, &path),
                "command" => action.command = self.texts(node, &path),
                "volumes" => action.volumes = self.texts(node, &path),
                "environment" => {
                    action.environment = self.pairs(node, &path);
                    settings = Some((path, node));
                }
                "pid" => action.pid = self.text(node, &path),
                "namespaces" => action.namespaces = self.namespaces(node, &path),
                "retries" => action.retries = self.number(node, &path),
                "retry-wait" => action.retry_wait = self.number(node, &path),
                "on-failure" => action.on_failure = self.texts(node, &path),
                "on-timeout" => action.on_timeout = self.texts(node, &path),
                _ => {}
            }
        }
        if let Some((path, node)) = settings {
            self.check_settings(node, &path, &[&action.image]);
        }
        action
    }

    fn namespaces(&mut self, node: &Node, path: &str) -> Option<Namespaces> {
        if node.value == Value::Null {
            return None;
        }
        let mut namespaces = Namespaces::default();
        for (key, node) in self.map(node, path, Level::Namespaces) {
            let path = format!("{path}.{key}");
            match key {
                "network" => namespaces.network = self.text(node, &path),
                "pid" => namespaces.pid = self.text(node, &path),
                _ => {}
            }
        }
        Some(namespaces)
    }

    /// Returns the known keys of a map at `level`, and records the unknown keys.
    fn map<'n>(&mut self, node: &'n Node, path: &str, level: Level) -> Vec<(&'n str, &'n Node)> {
        self.lines.insert(path.to_owned(), node.line);
        let entries = match &node.value {
            Value::Null => return Vec::new(),
            Value::Map(entries) => entries,
            _ if is_hole(node) => return Vec::new(),
            _ => {
                let expected = format!("a map of {}", level.keys().join(", "));
                self.mistake(node, path, &expected);
                return Vec::new();
            }
        };
        let mut known = Vec::new();
        for entry in entries.iter().filter(|entry| !entry.key.contains(HOLE)) {
            if level.keys().contains(&entry.key.as_str()) {
                known.push((entry.key.as_str(), &entry.node));
            } else {
                let full = self.unknown.len() == SENTENCES_MAX;
                let hint = if full { None } else { keys::meant(level, &entry.key) };
                self.report_unknown(entry.line, &join(path, &entry.key), level.unknown(), hint);
            }
        }
        known
    }

    fn check_settings(&mut self, node: &Node, path: &str, images: &[&str]) {
        let Value::Map(entries) = &node.value else { return };
        for entry in entries.iter().take(COMPARISONS_MAX.saturating_sub(self.compared)) {
            self.compared += 1;
            if let Some(meant) = keys::meant_setting(images, &entry.key) {
                let path = join(path, &entry.key);
                let hint = Some(format!("did you mean {meant}?"));
                self.report_unknown(entry.line, &path, "not a setting of the action", hint);
            }
        }
    }

    fn report_unknown(&mut self, line: usize, path: &str, what: &str, hint: Option<String>) {
        if self.unknown.len() < SENTENCES_MAX {
            let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
            self.unknown.push(format!("line {line}: {path}: {what}{hint}"));
        }
    }

    fn text(&mut self, node: &Node, path: &str) -> String {
        self.lines.insert(path.to_owned(), node.line);
        match &node.value {
            Value::Null => String::new(),
            Value::Text(text) => {
                if text.contains(HOLE) {
                    self.settled.insert(path.to_owned());
                }
                text.clone()
            }
            Value::List(_) | Value::Map(_) => {
                self.mistake(node, path, "text");
                String::new()
            }
        }
    }

    /// Parses a whole number in YAML 1.1 or 1.2 notation. A missing or unknown value counts as 0.
    fn number(&mut self, node: &Node, path: &str) -> i64 {
        self.lines.insert(path.to_owned(), node.line);
        let number = match &node.value {
            Value::Null => Some(0),
            Value::Text(text) if text.contains(HOLE) => Some(0),
            Value::Text(text) => whole_number(text),
            Value::List(_) | Value::Map(_) => None,
        };
        number.unwrap_or_else(|| {
            let count = path.ends_with("retries");
            let expected = if count { "a whole number" } else { "a whole number of seconds" };
            self.mistake(node, path, expected);
            0
        })
    }

    fn list<'n>(&mut self, node: &'n Node, path: &str) -> Vec<(String, &'n Node)> {
        self.lines.insert(path.to_owned(), node.line);
        match &node.value {
            Value::Null => Vec::new(),
            Value::List(items) => {
                items.iter().enumerate().map(|(at, it)| (format!("{path}[{at}]"), it)).collect()
            }
            _ => {
                if is_hole(node) {
                    self.settled.insert(path.to_owned());
                } else {
                    self.mistake(node, path, "a list");
                }
                Vec::new()
            }
        }
    }

    fn texts(&mut self, node: &Node, path: &str) -> Vec<String> {
        self.list(node, path).iter().map(|(path, item)| self.text(item, path)).collect()
    }

    fn pairs(&mut self, node: &Node, path: &str) -> BTreeMap<String, String> {
        self.lines.insert(path.to_owned(), node.line);
        match &node.value {
            Value::Null => BTreeMap::new(),
            Value::Map(entries) => entries
                .iter()
                .map(|it| (it.key.clone(), self.text(&it.node, &join(path, &it.key))))
                .collect(),
            _ if is_hole(node) => BTreeMap::new(),
            _ => {
                self.mistake(node, path, "a map of settings, such as KEY: value");
                BTreeMap::new()
            }
        }
    }

    fn mistake(&mut self, node: &Node, path: &str, expected: &str) {
        self.settled.insert(path.to_owned());
        if self.mistakes.len() == SENTENCES_MAX {
            return;
        }
        // The value of a setting may be a secret: the text is shown only where a number is
        // expected.
        let found = match &node.value {
            Value::Null => "nothing".to_owned(),
            Value::Text(text) if expected.contains("number") => format!("{:?}", shown(text)),
            Value::Text(_) => "text".to_owned(),
            Value::List(_) => "a list".to_owned(),
            Value::Map(_) => "a map".to_owned(),
        };
        let at = if path.is_empty() { "the document" } else { path };
        let line = node.line;
        self.mistakes.push(format!("line {line}: {at}: expected {expected}, found {found}"));
    }
}

fn is_hole(node: &Node) -> bool {
    matches!(&node.value, Value::Text(text) if text.contains(HOLE))
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { shown(key).to_owned() } else { format!("{path}.{}", shown(key)) }
}

/// Parses `600`, `1_000`, `0x10`, `0o17`, `017` (octal), `0b1` and `6e2` as `yaml.v3` does.
fn whole_number(text: &str) -> Option<i64> {
    let plain = text.trim().replace('_', "");
    let (sign, digits) = match plain.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, plain.strip_prefix('+').unwrap_or(&plain)),
    };
    if digits.starts_with(['+', '-']) {
        return None;
    }
    let based = [("0x", 16), ("0X", 16), ("0o", 8), ("0O", 8), ("0b", 2), ("0B", 2)];
    let prefixed =
        based.iter().find_map(|(prefix, base)| Some((digits.strip_prefix(prefix)?, *base)));
    let octal = || digits.strip_prefix('0').filter(|rest| !rest.is_empty()).map(|rest| (rest, 8));
    let (digits, base) = prefixed.or_else(octal).unwrap_or((digits, 10));
    let whole = i64::from_str_radix(digits, base).ok();
    whole.and_then(|whole| whole.checked_mul(sign)).or_else(|| whole_float(&plain))
}

#[allow(clippy::cast_possible_truncation)] // within what a double holds exactly
fn whole_float(text: &str) -> Option<i64> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte));
    let number: f64 = text.parse().ok().filter(|_| digits)?;
    (number.fract() == 0.0 && number.abs() < 9e15).then_some(number as i64)
}
