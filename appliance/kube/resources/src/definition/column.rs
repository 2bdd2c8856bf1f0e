//! Columns of the Table that `kubectl get` prints.

use jiff::Timestamp;
use serde_json::Value;

use super::json_path::JsonPath;

/// Type of a Table cell (`columnDefinitions[].type`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnType {
    /// Text, converted from any JSON type.
    String,
    /// JSON number without fraction.
    Integer,
    /// JSON number with or without fraction.
    Number,
    /// JSON boolean: `true` or `false`.
    Boolean,
    /// RFC 3339 time, shown as its age, such as `5d`.
    Date,
}

impl ColumnType {
    /// Parses the `type` of a definition's printer column; `None` for an unknown type.
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

    /// Returns the name of the type in `columnDefinitions[].type`.
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

/// Source of a cell's value.
#[derive(Clone)]
pub enum Cell {
    /// Values that a JSON path selects in the object.
    Path(JsonPath),
    /// Function that computes the value from the object and the present time, for values that no
    /// path can express.
    With(fn(&Value, Timestamp) -> Value),
}

/// Column of the table that `kubectl get` prints.
#[derive(Clone)]
pub struct Column {
    /// Column heading; kubectl shows it in upper case.
    pub name: String,
    /// Type of the cells in this column.
    pub kind: ColumnType,
    /// OpenAPI format, such as `date`; `name` marks the column with the object's name.
    pub format: String,
    /// Description in one sentence, for clients that show column descriptions.
    pub description: String,
    /// Priority: 0 shows the column always, a higher number only with `-o wide`.
    pub priority: u32,
    /// Source of the cells' values.
    pub cell: Cell,
}

impl Column {
    /// Makes a text column of the values that `path` selects.
    ///
    /// # Panics
    /// Panics if `path` is invalid, so `path` must be a constant of this crate.
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

    /// Makes a text column of the values that `make` returns.
    pub(crate) fn with(name: &str, make: fn(&Value, Timestamp) -> Value) -> Self {
        Self { cell: Cell::With(make), ..Self::of(name, "") }
    }

    /// Makes the column `Name`, with `metadata.name`.
    pub fn name() -> Self {
        Self {
            format: "name".to_owned(),
            description: "Name must be unique within a namespace.".to_owned(),
            ..Self::of("Name", ".metadata.name")
        }
    }

    /// Makes the column `Age` of custom resources, with the creation timestamp.
    pub fn age() -> Self {
        Self {
            kind: ColumnType::Date,
            description: "Time since the object was created.".to_owned(),
            ..Self::of("Age", ".metadata.creationTimestamp")
        }
    }

    /// Returns the column with priority 1: shown only with `-o wide`.
    #[must_use]
    pub(crate) fn wide(self) -> Self {
        Self { priority: 1, ..self }
    }
}
