//! Mistake in one field, with the messages of Kubernetes' `field.Error` (apimachinery
//! `util/validation/field/errors.go`).

use std::fmt;

use serde_json::Value;

/// Maximum length of a shown value and of a shown path, in bytes.
pub(crate) const MAX_SHOWN_BYTES: usize = 4 * 1024;

/// Maximum length of the detail in bytes; the detail may contain a CEL rule and its mistakes.
const MAX_DETAIL_BYTES: usize = 32 * 1024;

/// Path of the object itself in upstream's messages.
pub(crate) const NO_PATH: &str = "<nil>";

/// Kind of a mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mistake {
    /// A required field is missing.
    Required,
    /// The value violates a rule.
    Invalid,
    /// The value does not have the field's type or format.
    TypeInvalid,
    /// The value is not in the set of allowed values.
    NotSupported,
    /// The field must not be set: at this time, or by this caller.
    Forbidden,
    /// A value that must be unique occurs twice.
    Duplicate,
    /// The object or field that the value refers to does not exist.
    NotFound,
    /// The value is longer than its limit.
    TooLong,
    /// The list or map has more items than its limit.
    TooMany,
    /// The check itself failed; the caller did not cause the failure.
    Internal,
}

/// Mistake in one field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    /// Kind of the mistake.
    pub mistake: Mistake,
    /// Path from the root of the object: `spec.interfaces[0].dhcp.mac`.
    pub field: String,
    /// Invalid value; `None` if the message does not show it.
    pub value: Option<Value>,
    /// Rule that the value violates, in words.
    pub detail: String,
}

/// Result of a check.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings {
    /// Reasons to reject the object; empty for a valid object.
    pub errors: Vec<FieldError>,
    /// Messages of CEL rules that the old and the new object violate; reported as warnings.
    pub warnings: Vec<String>,
}

impl FieldError {
    /// Creates the error of a missing required field.
    pub fn required(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::make(Mistake::Required, field, None, detail)
    }

    /// Creates the error of a value that violates the rule `detail`.
    pub fn invalid(field: impl Into<String>, value: &Value, detail: impl Into<String>) -> Self {
        Self::make(Mistake::Invalid, field, Some(value), detail)
    }

    /// Creates an error as [`Self::invalid`], with the text `shown` instead of a JSON value.
    pub(crate) fn invalid_shown(field: impl Into<String>, shown: &str, detail: &str) -> Self {
        Self::make(Mistake::Invalid, field, None, format!("{shown}: {detail}"))
    }

    /// Creates the error of a value whose type or format is not `detail`.
    pub fn type_invalid(
        field: impl Into<String>,
        value: &Value,
        detail: impl Into<String>,
    ) -> Self {
        Self::make(Mistake::TypeInvalid, field, Some(value), detail)
    }

    /// Creates the error of a value that is not in `supported`.
    pub fn not_supported(field: impl Into<String>, value: &Value, supported: &[&str]) -> Self {
        let listed: Vec<String> = supported.iter().map(|one| go_text::quoted(one)).collect();
        let detail = match listed.is_empty() {
            true => String::new(),
            false => format!("supported values: {}", listed.join(", ")),
        };
        Self::make(Mistake::NotSupported, field, Some(value), detail)
    }

    /// Creates the error of a field that must not be set.
    pub fn forbidden(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::make(Mistake::Forbidden, field, None, detail)
    }

    /// Creates the error of a duplicate value that must be unique.
    pub fn duplicate(field: impl Into<String>, value: &Value) -> Self {
        Self::make(Mistake::Duplicate, field, Some(value), "")
    }

    /// Creates the error of a value longer than `limit` bytes.
    pub fn too_long(field: impl Into<String>, limit: usize) -> Self {
        let unit = if limit == 1 { "byte" } else { "bytes" };
        Self::make(Mistake::TooLong, field, None, format!("may not be more than {limit} {unit}"))
    }

    /// Creates the error of a list or map with `actual` items, more than `limit`.
    pub fn too_many(field: impl Into<String>, actual: usize, limit: i64) -> Self {
        let unit = if limit == 1 { "item" } else { "items" };
        let detail = match limit < 0 {
            true => "has too many items".to_owned(),
            false => format!("must have at most {limit} {unit}"),
        };
        Self::make(Mistake::TooMany, field, Some(&Value::from(actual)), detail)
    }

    /// Creates the error of a check that failed itself.
    pub fn internal(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::make(Mistake::Internal, field, None, detail)
    }

    fn make(
        mistake: Mistake,
        field: impl Into<String>,
        value: Option<&Value>,
        detail: impl Into<String>,
    ) -> Self {
        Self {
            mistake,
            field: cut(field.into(), MAX_SHOWN_BYTES),
            value: value.map(shown),
            detail: cut(detail.into(), MAX_DETAIL_BYTES),
        }
    }

    /// Returns the reason in the `causes` of a Kubernetes Status.
    pub fn reason(&self) -> &'static str {
        match self.mistake {
            Mistake::Required => "FieldValueRequired",
            Mistake::Invalid => "FieldValueInvalid",
            Mistake::TypeInvalid => "FieldValueTypeInvalid",
            Mistake::NotSupported => "FieldValueNotSupported",
            Mistake::Forbidden => "FieldValueForbidden",
            Mistake::Duplicate => "FieldValueDuplicate",
            Mistake::NotFound => "FieldValueNotFound",
            Mistake::TooLong => "FieldValueTooLong",
            Mistake::TooMany => "FieldValueTooMany",
            Mistake::Internal => "InternalError",
        }
    }

    /// Returns true if CEL rules are not evaluated because of this mistake.
    pub(crate) fn blocks_rules(&self) -> bool {
        matches!(
            self.mistake,
            Mistake::NotSupported
                | Mistake::Required
                | Mistake::TooLong
                | Mistake::TooMany
                | Mistake::TypeInvalid
        )
    }

    /// Returns the message without the field's name.
    pub fn body(&self) -> String {
        let head = match self.mistake {
            Mistake::Required => "Required value",
            Mistake::Invalid | Mistake::TypeInvalid => "Invalid value",
            Mistake::NotSupported => "Unsupported value",
            Mistake::Forbidden => "Forbidden",
            Mistake::Duplicate => "Duplicate value",
            Mistake::NotFound => "Not found",
            Mistake::TooLong => "Too long",
            Mistake::TooMany => "Too many",
            Mistake::Internal => "Internal error",
        };
        let mut text = head.to_owned();
        let value = self.value.as_ref().map(go_text::field_value);
        for part in [value, Some(self.detail.clone())] {
            if let Some(part) = part.filter(|part| !part.is_empty()) {
                text.push_str(": ");
                text.push_str(&part);
            }
        }
        text
    }
}

/// Truncates a text to `limit` bytes.
pub(crate) fn cut(mut text: String, limit: usize) -> String {
    if text.len() > limit {
        text.truncate(text.floor_char_boundary(limit));
        text.push('…');
    }
    text
}

/// Returns a value for a message: complete, or the beginning of its text if it is too long.
fn shown(value: &Value) -> Value {
    let mut left = MAX_SHOWN_BYTES;
    match value {
        Value::String(text) if text.len() > MAX_SHOWN_BYTES => {
            let end = text.floor_char_boundary(MAX_SHOWN_BYTES);
            Value::from(format!("{}…", &text[..end]))
        }
        Value::Array(_) | Value::Object(_) if !is_short(value, &mut left) => {
            Value::from(cut(go_text::json(value), MAX_SHOWN_BYTES))
        }
        value => value.clone(),
    }
}

/// Returns true if the value needs at most `left` bytes; subtracts its size from `left`.
fn is_short(value: &Value, left: &mut usize) -> bool {
    let own = match value {
        Value::String(text) => text.len(),
        _ => 1,
    };
    match left.checked_sub(own) {
        None => return false,
        Some(rest) => *left = rest,
    }
    match value {
        Value::Array(items) => items.iter().all(|item| is_short(item, left)),
        Value::Object(map) => map.iter().all(|(name, item)| {
            *left = left.saturating_sub(name.len());
            is_short(item, left)
        }),
        _ => true,
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.body())
    }
}
