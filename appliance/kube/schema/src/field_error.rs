//! What is wrong with one field, in the words of Kubernetes' `field.Error`
//! (apimachinery `util/validation/field/errors.go`).

use std::fmt;

use serde_json::Value;

/// The longest value and the longest path that are shown, in bytes.
pub(crate) const MAX_SHOWN_BYTES: usize = 4 * 1024;

/// The longest detail, in bytes: it may show a rule and its mistakes.
const MAX_DETAIL_BYTES: usize = 32 * 1024;

/// What upstream prints for the path of the object itself.
pub(crate) const NO_PATH: &str = "<nil>";

/// The kind of mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mistake {
    /// The field must be there.
    Required,
    /// The value breaks a rule.
    Invalid,
    /// The value is not of the field's type or format.
    TypeInvalid,
    /// The value is not one of a closed set.
    NotSupported,
    /// The field must not be set (now, or by the caller).
    Forbidden,
    /// The value is there twice where it must be unique.
    Duplicate,
    /// What the value names is not there.
    NotFound,
    /// The value is longer than its limit.
    TooLong,
    /// The list or map has more items than its limit.
    TooMany,
    /// The mistake is not the caller's.
    Internal,
}

/// One wrong field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    /// What kind of mistake it is.
    pub mistake: Mistake,
    /// Path from the object's root: `spec.interfaces[0].dhcp.mac`.
    pub field: String,
    /// The value at fault, where showing it helps.
    pub value: Option<Value>,
    /// The rule that was broken.
    pub detail: String,
}

impl FieldError {
    /// The field must be there.
    pub fn required(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::make(Mistake::Required, field, None, detail)
    }

    /// The value breaks the rule `detail`.
    pub fn invalid(field: impl Into<String>, value: &Value, detail: impl Into<String>) -> Self {
        Self::make(Mistake::Invalid, field, Some(value), detail)
    }

    /// Like [`Self::invalid`], with the value as upstream prints it where that is no JSON of ours.
    pub(crate) fn invalid_shown(field: impl Into<String>, shown: &str, detail: &str) -> Self {
        Self::make(Mistake::Invalid, field, None, format!("{shown}: {detail}"))
    }

    /// The value is of another type or format than `detail` says.
    pub fn type_invalid(
        field: impl Into<String>,
        value: &Value,
        detail: impl Into<String>,
    ) -> Self {
        Self::make(Mistake::TypeInvalid, field, Some(value), detail)
    }

    /// The value is none of `supported`.
    pub fn not_supported(field: impl Into<String>, value: &Value, supported: &[&str]) -> Self {
        let listed: Vec<String> = supported.iter().map(|one| go_text::quoted(one)).collect();
        let detail = match listed.is_empty() {
            true => String::new(),
            false => format!("supported values: {}", listed.join(", ")),
        };
        Self::make(Mistake::NotSupported, field, Some(value), detail)
    }

    /// The field must not be set.
    pub fn forbidden(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::make(Mistake::Forbidden, field, None, detail)
    }

    /// The value stands twice where it must be unique.
    pub fn duplicate(field: impl Into<String>, value: &Value) -> Self {
        Self::make(Mistake::Duplicate, field, Some(value), "")
    }

    /// The value is longer than `limit` bytes.
    pub fn too_long(field: impl Into<String>, limit: usize) -> Self {
        let unit = if limit == 1 { "byte" } else { "bytes" };
        Self::make(Mistake::TooLong, field, None, format!("may not be more than {limit} {unit}"))
    }

    /// The list or map has `actual` items where `limit` are allowed.
    pub fn too_many(field: impl Into<String>, actual: usize, limit: i64) -> Self {
        let unit = if limit == 1 { "item" } else { "items" };
        let detail = match limit < 0 {
            true => "has too many items".to_owned(),
            false => format!("must have at most {limit} {unit}"),
        };
        Self::make(Mistake::TooMany, field, Some(&Value::from(actual)), detail)
    }

    /// The check itself failed.
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

    /// The word a Status cause names the mistake by.
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

    /// Whether rules in CEL are pointless while this mistake stands.
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

    /// The mistake without the field's name.
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

/// The text, cut where it is longer than `limit`.
pub(crate) fn cut(mut text: String, limit: usize) -> String {
    if text.len() > limit {
        text.truncate(text.floor_char_boundary(limit));
        text.push('…');
    }
    text
}

/// The value, or the beginning of its text where it is too long to be shown.
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

/// Whether the value has few parts and short texts only.
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
