//! Printer columns, and the simple JSONPaths of columns and of the scale subresource.

use serde_json::Value;

use super::check::text;
use crate::field_error::FieldError;

const TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];

const FORMATS: [&str; 8] =
    ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];

pub(super) fn check(column: &Value, path: &str, errors: &mut Vec<FieldError>) {
    if text(column, "/name").is_empty() {
        errors.push(FieldError::required(format!("{path}.name"), ""));
    }
    let kind = text(column, "/type");
    let one_of = format!("must be one of {}", TYPES.join(","));
    if kind.is_empty() {
        errors.push(FieldError::required(format!("{path}.type"), one_of));
    } else if !TYPES.contains(&kind) {
        errors.push(FieldError::invalid(format!("{path}.type"), &kind.into(), one_of));
    }
    let format = text(column, "/format");
    if !format.is_empty() && !FORMATS.contains(&format) {
        let detail = format!("must be one of {}", FORMATS.join(","));
        errors.push(FieldError::invalid(format!("{path}.format"), &format.into(), detail));
    }
    let json_path = text(column, "/jsonPath");
    let place = format!("{path}.JSONPath");
    match json_path {
        "" => errors.push(FieldError::required(place, "")),
        json_path => {
            check_path(json_path, &place, errors);
        }
    }
}

/// Returns true for a simple JSONPath. Like upstream, checks only that it begins with a dot.
pub(super) fn check_path(path: &str, place: &str, errors: &mut Vec<FieldError>) -> bool {
    let fits = path.starts_with('.');
    if !fits {
        let detail = "must be a simple json path starting with .";
        errors.push(FieldError::invalid(place, &path.into(), detail));
    }
    fits
}
