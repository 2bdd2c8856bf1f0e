//! Output to the terminal: results on standard output, messages on standard error.

mod bar;

use std::io::{self, IsTerminal as _, Write as _};

use jiff::Timestamp;
use printers::{document, table};
use serde::Serialize;
use serde_json::Value;
use status::words::Tone;

use crate::error::Error;

pub use bar::Bar;
pub use printers::document::{brief, yaml};
pub use printers::table::{Cell, Table, line};

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Aligned columns for a terminal.
    Table,
    /// The objects as JSON.
    Json,
    /// The objects as YAML.
    Yaml,
    /// Names as `kind/name`, one per line.
    Name,
}

/// Writer of results and messages.
#[derive(Debug, Clone, Copy)]
pub struct Printer {
    pub format: Format,
    colour: bool,
    live: bool,
}

impl Printer {
    /// Creates a printer for the standard streams. Colors: on a terminal without `NO_COLOR`.
    pub fn new(format: Format) -> Printer {
        let wanted = std::env::var_os("NO_COLOR").is_none_or(|it| it.is_empty());
        let colour = wanted && io::stdout().is_terminal();
        Printer { format, colour, live: io::stderr().is_terminal() }
    }

    /// Prints a line of the result to standard output.
    pub fn line(&self, line: &str) -> Result<(), Error> {
        let mut out = io::stdout().lock();
        writeln!(out, "{line}").and_then(|()| out.flush()).map_err(Error::Output)
    }

    /// Prints a line for people to standard error.
    pub fn note(&self, line: &str) {
        // A closed standard error must not stop the work.
        let _ = writeln!(io::stderr().lock(), "{line}");
    }

    /// Prints the effect on an object: `hardware/nuc1 created`; with `-o`, the object.
    pub fn done(&self, object: &Value, what: &str) -> Result<(), Error> {
        match self.format {
            Format::Table => self.line(&format!("{} {what}", document::name(object))),
            _ => self.object(object),
        }
    }

    /// Prints one object. The format `table` prints its YAML.
    pub fn object(&self, object: &Value) -> Result<(), Error> {
        match self.format {
            Format::Table | Format::Yaml => self.line(&document::yaml(object)),
            Format::Json => self.line(&document::json(object)),
            Format::Name => self.line(&document::name(object)),
        }
    }

    /// Prints a list of objects; the format `table` prints the result of `table`.
    pub fn objects(
        &self,
        items: Vec<Value>,
        table: impl FnOnce(&[Value], Timestamp) -> Table,
    ) -> Result<(), Error> {
        match self.format {
            Format::Table => self.table(&table(&items, Timestamp::now())),
            Format::Name => items.iter().try_for_each(|item| self.line(&document::name(item))),
            Format::Json => self.line(&document::json(&document::list(items))),
            Format::Yaml => self.line(&document::yaml(&document::list(items))),
        }
    }

    pub fn table(&self, table: &Table) -> Result<(), Error> {
        self.line(table.render(self.colour).trim_end_matches('\n'))
    }

    /// Prints values that are not API objects; `None` without output for `table` and `name`.
    pub fn values<T: Serialize>(&self, values: &[T]) -> Option<Result<(), Error>> {
        let value = serde_json::to_value(values).unwrap_or_default();
        match self.format {
            Format::Table | Format::Name => None,
            Format::Json => Some(self.line(&document::json(&value))),
            Format::Yaml => Some(self.line(&document::yaml(&value))),
        }
    }

    /// Returns `text` in the color of `tone`.
    pub fn toned(&self, text: &str, tone: Tone) -> String {
        table::paint(text, Some(tone), self.colour)
    }

    /// Creates a progress display: a bar on a terminal, else lines.
    pub fn bar(&self) -> Bar {
        Bar::new(self.live)
    }
}

/// Returns the age of an object in kubectl's format: `5s`, `12m`, `3h`, `4d`.
pub fn age(object: &Value, now: Timestamp) -> String {
    let created = object["metadata"]["creationTimestamp"].as_str().unwrap_or_default();
    created.parse().map(|created| since(created, now)).unwrap_or_default()
}

/// Returns the time since `then` in kubectl's format.
pub fn since(then: Timestamp, now: Timestamp) -> String {
    let seconds = now.duration_since(then).as_secs().max(0);
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7_200 => format!("{}m", seconds / 60),
        7_200..172_800 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// Returns the text at a JSON pointer of an object; empty if there is none.
pub fn text(object: &Value, pointer: &str) -> String {
    match object.pointer(pointer) {
        Some(Value::String(text)) => status::plain(text),
        Some(Value::Null) | None => String::new(),
        Some(other) => other.to_string(),
    }
}
