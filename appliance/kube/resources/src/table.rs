//! `Table` objects (`meta.k8s.io`), from which `kubectl get` prints columns and rows.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::definition::json_path::printed;
use crate::definition::{Cell, Column, ColumnType, ResourceDefinition};

/// Part of the object that a row contains in addition to its cells (`includeObject`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RowObject {
    /// Only the object's metadata.
    #[default]
    Metadata,
    /// The whole object, unchanged.
    Object,
    /// No part of the object.
    None,
}

/// Options for making a Table.
#[derive(Debug, Clone, Copy)]
pub struct Style {
    /// `apiVersion` of the Table, such as `meta.k8s.io/v1`.
    pub api_version: &'static str,
    /// Part of the object that each row contains.
    pub row: RowObject,
    /// False for later events of a watch, because the client already has the columns.
    pub with_columns: bool,
    /// Present time, for computing ages.
    pub now: Timestamp,
}

/// Returns a Table with one row for each of `objects`.
pub fn table(
    definition: &ResourceDefinition,
    objects: &[Value],
    list_metadata: Value,
    style: Style,
) -> Value {
    let columns = if style.with_columns { definition.columns.as_slice() } else { &[] };
    json!({
        "kind": "Table",
        "apiVersion": style.api_version,
        "metadata": list_metadata,
        "columnDefinitions": columns.iter().map(heading).collect::<Vec<_>>(),
        "rows": objects.iter().map(|object| line(definition, object, style)).collect::<Vec<_>>(),
    })
}

/// Returns an object's metadata alone, as `PartialObjectMetadata`.
pub fn partial(object: &Value, api_version: &str) -> Value {
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": api_version,
        "metadata": object["metadata"],
    })
}

fn heading(column: &Column) -> Value {
    json!({
        "name": column.name,
        "type": column.kind.word(),
        "format": column.format,
        "description": column.description,
        "priority": column.priority,
    })
}

fn line(definition: &ResourceDefinition, object: &Value, style: Style) -> Value {
    let cells: Vec<Value> =
        definition.columns.iter().map(|column| cell(column, object, style.now)).collect();
    match style.row {
        RowObject::Metadata => {
            json!({ "cells": cells, "object": partial(object, style.api_version) })
        }
        RowObject::Object => json!({ "cells": cells, "object": object }),
        RowObject::None => json!({ "cells": cells, "object": null }),
    }
}

fn cell(column: &Column, object: &Value, now: Timestamp) -> Value {
    let path = match &column.cell {
        Cell::With(make) => return make(object, now),
        Cell::Path(path) => path,
    };
    let Some(first) = path.first(object) else { return Value::Null };
    typed(column.kind, first, now)
}

/// Converts a value to a cell of the column type `kind`; null if the value has another type
/// (apiextensions-apiserver `pkg/registry/customresource/tableconvertor`).
fn typed(kind: ColumnType, value: &Value, now: Timestamp) -> Value {
    match (kind, value) {
        (_, Value::Null) => Value::Null,
        (ColumnType::String, value) => json!(printed(value)),
        (ColumnType::Integer, Value::Number(number)) => match number.as_f64() {
            // A fraction is cut off, as in a Go conversion.
            #[allow(clippy::cast_possible_truncation)]
            Some(float) if !number.is_i64() && !number.is_u64() => json!(float.trunc() as i64),
            _ => value.clone(),
        },
        (ColumnType::Number, Value::Number(_)) | (ColumnType::Boolean, Value::Bool(_)) => {
            value.clone()
        }
        (ColumnType::Date, Value::String(text)) => json!(age(text, now)),
        _ => Value::Null,
    }
}

/// Returns the time since the RFC 3339 time `text`, in kubectl's form, such as `5d`; `<invalid>` if
/// `text` is not a time.
pub(crate) fn age(text: &str, now: Timestamp) -> String {
    match text.parse::<Timestamp>() {
        Ok(then) => duration(now.as_second().saturating_sub(then.as_second())),
        Err(_) => "<invalid>".to_owned(),
    }
}

/// Formats a duration as kubectl does, in one or two units: `3m20s`, `45m`, `5d`.
fn duration(seconds: i64) -> String {
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let days = hours / 24;
    let pair = |big: i64, unit: char, small: i64, rest: char| match small {
        0 => format!("{big}{unit}"),
        _ => format!("{big}{unit}{small}{rest}"),
    };
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        120..600 => pair(minutes, 'm', seconds % 60, 's'),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => pair(hours, 'h', minutes % 60, 'm'),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => pair(days, 'd', hours % 24, 'h'),
        691_200..63_072_000 => format!("{days}d"),
        63_072_000..252_288_000 => pair(days / 365, 'y', days % 365, 'd'),
        _ => format!("{}y", days / 365),
    }
}

#[cfg(test)]
mod tests {
    use super::{RowObject, Style, age, duration, table};
    use jiff::Timestamp;
    use serde_json::json;

    #[test]
    fn ages_read_as_kubectls() {
        for (seconds, text) in [
            (-5, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (125, "2m5s"),
            (600, "10m"),
            (10_799, "179m"),
            (10_800, "3h"),
            (10_860, "3h1m"),
            (28_800, "8h"),
            (172_799, "47h"),
            (172_800, "2d"),
            (180_000, "2d2h"),
            (691_200, "8d"),
            (63_072_000, "2y"),
            (63_158_400, "2y1d"),
            (315_360_000, "10y"),
        ] {
            assert_eq!(duration(seconds), text, "{seconds}");
        }
        assert_eq!(age("yesterday", Timestamp::UNIX_EPOCH), "<invalid>");
    }

    #[test]
    fn rows_follow_the_columns() {
        let registry = crate::builtin::registry().unwrap();
        let definition = registry.by_id("/secrets").unwrap();
        let secret = json!({
            "metadata": { "name": "bmc", "creationTimestamp": "1970-01-01T00:00:00Z" },
            "type": "Opaque", "data": { "username": "", "password": "" },
        });
        let now = Timestamp::from_second(90).unwrap();
        let row = RowObject::Metadata;
        let style = Style { api_version: "meta.k8s.io/v1", row, with_columns: true, now };
        let made = table(definition, &[secret], json!({}), style);
        assert_eq!(made["rows"][0]["cells"], json!(["bmc", "Opaque", 2, "90s"]));
        assert_eq!(made["rows"][0]["object"]["kind"], "PartialObjectMetadata");
        assert!(made["rows"][0]["object"].get("data").is_none());
        assert_eq!(made["columnDefinitions"][0]["format"], "name");
    }
}
