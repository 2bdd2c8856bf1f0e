//! Output to the terminal: results on standard output, messages on standard error.

mod bar;

use std::io::{self, IsTerminal as _, Write as _};

use jiff::Timestamp;
use printers::overview::Style;
use printers::{document, table};
use rustix::termios::tcgetwinsize;
use serde::Serialize;
use serde_json::Value;
use status::words::Tone;

use crate::error::Error;

pub use bar::Bar;
pub use printers::document::{brief, yaml};
pub use printers::machines::since;
pub use printers::table::{Cell, Table};

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Aligned columns for a terminal.
    Table,
    /// Aligned columns with all details.
    Wide,
    /// The objects as JSON.
    Json,
    /// The objects as YAML.
    Yaml,
    /// Names as `kind/name`, one per line.
    Name,
}

impl Format {
    /// Returns true for text for people: a table or a sentence.
    pub fn is_table(self) -> bool {
        matches!(self, Format::Table | Format::Wide)
    }
}

/// Writer of results and messages.
#[derive(Debug, Clone, Copy)]
pub struct Printer {
    pub format: Format,
    color: bool,
    live: bool,
    /// Width of the terminal of standard output; `None` if it is not a terminal.
    width: Option<usize>,
    /// False for tables without their line of headings.
    has_headings: bool,
}

/// Width of text for people that goes to a file or another program, in characters.
const PLAIN_WIDTH: usize = 80;

impl Printer {
    /// Creates a printer for the standard streams. Colors: on a terminal without `NO_COLOR`.
    pub fn new(format: Format) -> Printer {
        let wanted = std::env::var_os("NO_COLOR").is_none_or(|it| it.is_empty());
        let size = io::stdout().is_terminal().then(|| tcgetwinsize(io::stdout()).ok()).flatten();
        let width = size.map(|size| usize::from(size.ws_col)).filter(|width| *width > 0);
        let color = wanted && io::stdout().is_terminal();
        Printer { format, color, live: io::stderr().is_terminal(), width, has_headings: true }
    }

    /// Returns a printer whose tables have no line of headings.
    pub fn without_headings(self) -> Printer {
        Printer { has_headings: false, ..self }
    }

    /// Returns width and colors of text for people.
    pub fn style(&self) -> Style {
        Style { width: self.width.unwrap_or(PLAIN_WIDTH), color: self.color }
    }

    /// Returns true if standard output is a terminal.
    pub fn is_terminal(&self) -> bool {
        self.width.is_some()
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
            Format::Table | Format::Wide => {
                self.line(&format!("{} {what}", document::name(object)))
            }
            _ => self.object(object),
        }
    }

    /// Prints one object. The format `table` prints its YAML.
    pub fn object(&self, object: &Value) -> Result<(), Error> {
        match self.format {
            Format::Table | Format::Wide | Format::Yaml => self.line(&document::yaml(object)),
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
            Format::Table | Format::Wide => self.table(table(&items, Timestamp::now())),
            Format::Name => items.iter().try_for_each(|item| self.line(&document::name(item))),
            Format::Json => self.line(&document::json(&document::list(items))),
            Format::Yaml => self.line(&document::yaml(&document::list(items))),
        }
    }

    /// Prints a table. Without `-o wide`, the details are left out, and on a terminal the lines fit
    /// its width.
    pub fn table(&self, table: Table) -> Result<(), Error> {
        let table = if self.format == Format::Wide {
            table
        } else {
            let mut brief = table.brief();
            self.width.iter().for_each(|width| brief.fit(*width));
            brief
        };
        let table = if self.has_headings { table } else { table.without_headings() };
        self.line(table.render(self.color).trim_end_matches('\n'))
    }

    /// Prints values that are not API objects; `None` without output for `table` and `name`.
    pub fn values<T: Serialize>(&self, values: &[T]) -> Option<Result<(), Error>> {
        let value = serde_json::to_value(values).unwrap_or_default();
        match self.format {
            Format::Table | Format::Wide | Format::Name => None,
            Format::Json => Some(self.line(&document::json(&value))),
            Format::Yaml => Some(self.line(&document::yaml(&value))),
        }
    }

    /// Returns `text` in the color of `tone`.
    pub fn toned(&self, text: &str, tone: Tone) -> String {
        table::paint(text, Some(tone), self.color)
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

/// Returns the text at a JSON pointer of an object; empty if there is none.
pub fn text(object: &Value, pointer: &str) -> String {
    match object.pointer(pointer) {
        Some(Value::String(text)) => status::plain(text),
        Some(Value::Null) | None => String::new(),
        Some(other) => other.to_string(),
    }
}
