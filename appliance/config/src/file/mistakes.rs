//! Mistakes of a configuration text, with their lines. [`Config`] makes the checks; this module
//! adds the line of each mistake.

use std::fmt;

use toml_edit::{Document, Item, Table};

use crate::{Config, Disk, SystemKind, sections};

/// Maximum number of mistakes of the TOML format that one check reports.
const FORMAT_MISTAKES_MAX: usize = 20;

/// Mistake of a configuration text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// Line, counted from 1; `None` if the mistake has no line.
    pub line: Option<usize>,
    /// Description of the mistake; begins with the key if there is one.
    pub what: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.what),
            None => f.write_str(&self.what),
        }
    }
}

/// Parses and checks a text for this computer.
///
/// # Errors
/// The text has mistakes. All are returned, sorted by line.
pub fn checked(text: &str, system_kind: SystemKind) -> Result<Config, Vec<Mistake>> {
    checked_with(text, system_kind, Disk::Own)
}

/// Checks a text for a flashed box on another computer. Folders and files that the text names are
/// not checked.
///
/// # Errors
/// The text has mistakes. All are returned, sorted by line.
pub fn checked_elsewhere(text: &str) -> Result<(), Vec<Mistake>> {
    checked_with(text, SystemKind::Firmware, Disk::Foreign).map(drop)
}

fn checked_with(text: &str, system_kind: SystemKind, disk: Disk) -> Result<Config, Vec<Mistake>> {
    let (rest, mut mistakes) = of_format(text);
    let config = match Config::read_with(&rest, system_kind, disk) {
        Ok(config) => Some(config),
        // Mistakes of the format beyond the limit.
        Err(_) if toml::from_str::<Config>(bare(&rest)).is_err() => None,
        Err(problems) => {
            let placed = |what: String| Mistake { line: line_of(&rest, &what), what };
            mistakes.extend(problems.into_iter().map(placed));
            None
        }
    };
    mistakes.sort_by_key(|mistake| mistake.line.unwrap_or(usize::MAX));
    config.filter(|_| mistakes.is_empty()).ok_or(mistakes)
}

/// Returns the text without the byte order mark that some editors write.
pub fn bare(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// Returns the mistakes of the TOML format, and the text with these lines emptied, so that one
/// mistake does not hide the next.
fn of_format(text: &str) -> (String, Vec<Mistake>) {
    let (mut rest, mut mistakes) = (text.to_owned(), Vec::new());
    while let Err(error) = toml::from_str::<Config>(bare(&rest)) {
        let shift = rest.len() - bare(&rest).len();
        let at = error.span().map(|span| (span.start + shift).min(rest.len()));
        let line = at.map(|at| rest.as_bytes()[..at].iter().filter(|it| **it == b'\n').count());
        if let Some(what) = sections::two_names(&error) {
            mistakes.push(Mistake { line: line_of(&rest, &what), what });
            break;
        }
        let what = error.message().replace('\n', " ");
        let missing = what.contains("missing field");
        // A missing key may be the one on a removed line.
        if !missing || mistakes.is_empty() {
            mistakes.push(Mistake { line: line.map(|line| line + 1), what });
        }
        let Some(line) = line.filter(|_| !missing && mistakes.len() < FORMAT_MISTAKES_MAX) else {
            break;
        };
        match without(&rest, line) {
            Some(shorter) => rest = shorter,
            None => break,
        }
    }
    (rest, mistakes)
}

/// Returns the text with this line empty; `None` unless the line is a complete key and value.
fn without(text: &str, line: usize) -> Option<String> {
    let mut lines: Vec<&str> = text.split('\n').collect();
    let there = lines.get_mut(line)?;
    let table = toml::from_str::<toml::Table>(bare(there).trim_end_matches('\r')).ok()?;
    if table.is_empty() || there.trim_start().starts_with('[') {
        return None;
    }
    *there = "";
    Some(lines.join("\n"))
}

/// Returns the line of the key at the begin of `problem`: `network[1].mode: …`; `None` if not
/// found.
fn line_of(text: &str, problem: &str) -> Option<usize> {
    let (path, _) = problem.split_once(": ")?;
    let text = bare(text);
    let document = Document::parse(text).ok()?;
    let table = document.as_table();
    let path = sections::key_in(path, |name| table.contains_key(name));
    let at = place(table, &path)?;
    Some(text.as_bytes()[..at.min(text.len())].iter().filter(|it| **it == b'\n').count() + 1)
}

/// Returns the byte offset of the deepest key of `path` that exists in the text.
fn place(table: &Table, path: &str) -> Option<usize> {
    let (first, rest) = path.split_once('.').unwrap_or((path, ""));
    let (key, index) = match first.split_once('[') {
        Some((key, index)) => (key, index.trim_end_matches(']').parse::<usize>().ok()),
        None => (first, None),
    };
    let (name, item) = table.get_key_value(key)?;
    let here = name.span().map(|span| span.start);
    let below = match item {
        Item::Table(table) => Some(table),
        Item::ArrayOfTables(tables) => tables.get(index.unwrap_or(0)),
        Item::Value(_) | Item::None => None,
    };
    let Some(below) = below else { return here };
    let own = below.span().map(|span| span.start).or(here);
    if rest.is_empty() { own } else { place(below, rest).or(own) }
}
