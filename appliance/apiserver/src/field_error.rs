//! What is wrong with one field, in the words of Kubernetes' `field.Error`.

use std::fmt;

use serde_json::Value;

use crate::status_error::Cause;

/// The kind of mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mistake {
    /// The field must be there.
    Required,
    /// The value breaks a rule.
    Invalid,
    /// The value is not one of a closed set.
    NotSupported,
    /// The field must not be set (now, or by the caller).
    Forbidden,
    /// The value is longer than its limit.
    TooLong,
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
        Self::make(Mistake::Invalid, field, Some(value.clone()), detail)
    }

    /// The value is none of `supported`.
    pub fn not_supported(field: impl Into<String>, value: &Value, supported: &[&str]) -> Self {
        let listed: Vec<String> = supported.iter().map(|one| format!("{one:?}")).collect();
        let detail = format!("supported values: {}", listed.join(", "));
        Self::make(Mistake::NotSupported, field, Some(value.clone()), detail)
    }

    /// The field must not be set.
    pub fn forbidden(field: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::make(Mistake::Forbidden, field, None, detail)
    }

    /// The value is longer than `limit` bytes.
    pub fn too_long(field: impl Into<String>, limit: usize) -> Self {
        Self::make(Mistake::TooLong, field, None, format!("may not be more than {limit} bytes"))
    }

    fn make(
        mistake: Mistake,
        field: impl Into<String>,
        value: Option<Value>,
        detail: impl Into<String>,
    ) -> Self {
        Self { mistake, field: field.into(), value, detail: detail.into() }
    }

    pub(crate) fn cause(&self) -> Cause {
        let reason = match self.mistake {
            Mistake::Required => "FieldValueRequired",
            Mistake::Invalid => "FieldValueInvalid",
            Mistake::NotSupported => "FieldValueNotSupported",
            Mistake::Forbidden => "FieldValueForbidden",
            Mistake::TooLong => "FieldValueTooLong",
        };
        Cause { reason, message: self.body(), field: self.field.clone() }
    }

    fn body(&self) -> String {
        let head = match self.mistake {
            Mistake::Required => "Required value",
            Mistake::Invalid => "Invalid value",
            Mistake::NotSupported => "Unsupported value",
            Mistake::Forbidden => "Forbidden",
            Mistake::TooLong => "Too long",
        };
        let mut text = head.to_owned();
        for part in [self.value.as_ref().map(Value::to_string), Some(self.detail.clone())] {
            if let Some(part) = part.filter(|part| !part.is_empty()) {
                text.push_str(": ");
                text.push_str(&part);
            }
        }
        text
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.body())
    }
}
