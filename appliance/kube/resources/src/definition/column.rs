//! Columns of `kubectl get`.

use jiff::Timestamp;
use serde_json::Value;

use crate::json_path::JsonPath;

/// How a Table prints a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnType {
    /// The printed form, whatever the JSON type.
    String,
    /// A JSON number without fraction.
    Integer,
    /// A JSON number.
    Number,
    /// A JSON boolean.
    Boolean,
    /// An RFC 3339 time, shown as the time since.
    Date,
}

impl ColumnType {
    /// The type a CustomResourceDefinition's word names.
    pub fn named(word: &str) -> Option<Self> {
        Some(match word {
            "string" => Self::String,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "boolean" => Self::Boolean,
            "date" => Self::Date,
            _ => return None,
        })
    }

    /// The word in `columnDefinitions[].type`.
    pub fn word(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::Date => "date",
        }
    }
}

/// Where a cell's value comes from.
#[derive(Clone)]
pub enum Cell {
    /// The values a path finds.
    Path(JsonPath),
    /// Anything a path cannot say; given the object and the time now.
    With(fn(&Value, Timestamp) -> Value),
}

/// One column of `kubectl get`.
#[derive(Clone)]
pub struct Column {
    /// The heading, as the client shows it in upper case.
    pub name: String,
    /// The cell's type.
    pub kind: ColumnType,
    /// `name` marks the column with the object's name.
    pub format: String,
    /// One sentence for `explain`-like tools.
    pub description: String,
    /// 0 is always shown; more only with `-o wide`.
    pub priority: u32,
    /// Where the value comes from.
    pub cell: Cell,
}

impl Column {
    /// A column of what `path` finds, as text.
    ///
    /// # Panics
    /// When the path cannot be read: for paths written in code.
    pub(crate) fn of(name: &str, path: &str) -> Self {
        Self {
            name: name.to_owned(),
            kind: ColumnType::String,
            format: String::new(),
            description: format!("The object's {path}."),
            priority: 0,
            cell: Cell::Path(JsonPath::parse(path).expect("a test reads every path written here")),
        }
    }

    /// A column of what `make` says, as text.
    pub(crate) fn with(name: &str, make: fn(&Value, Timestamp) -> Value) -> Self {
        Self { cell: Cell::With(make), ..Self::of(name, "") }
    }

    /// The object's name.
    pub fn name() -> Self {
        Self {
            format: "name".to_owned(),
            description: "Name must be unique within a namespace.".to_owned(),
            ..Self::of("Name", ".metadata.name")
        }
    }

    /// The time since the object was created, as custom resources show it.
    pub fn age() -> Self {
        Self {
            kind: ColumnType::Date,
            description: "Time since the object was created.".to_owned(),
            ..Self::of("Age", ".metadata.creationTimestamp")
        }
    }

    /// The same, shown only with `-o wide`.
    #[must_use]
    pub(crate) fn wide(self) -> Self {
        Self { priority: 1, ..self }
    }
}
