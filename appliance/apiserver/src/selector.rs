//! Label and field selectors: which objects of a list or watch are meant.

use serde_json::Value;

use crate::definition::ResourceDefinition;
use crate::json_path::{JsonPath, printed};
use crate::status_error::StatusError;

/// Requirements one selector may hold; more is no selector a person or controller writes.
pub const MAX_REQUIREMENTS: usize = 64;

/// A label selector: every requirement must hold. The default selects everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LabelSelector(Vec<LabelRequirement>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum LabelRequirement {
    Exists(String),
    Absent(String),
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
}

impl LabelSelector {
    /// Reads `a=b, c!=d, e in (f, g), h notin (i), j, !k`.
    ///
    /// # Errors
    /// 400 with the part that cannot be read.
    pub fn parse(text: &str) -> Result<Self, StatusError> {
        let parts = split_outside_parentheses(text);
        if parts.len() > MAX_REQUIREMENTS {
            return Err(unreadable(text, "too many requirements"));
        }
        let parts = parts.into_iter().map(str::trim).filter(|part| !part.is_empty());
        parts
            .map(|part| label_requirement(part).ok_or_else(|| unreadable(text, part)))
            .collect::<Result<Vec<_>, _>>()
            .map(Self)
    }

    /// Whether the object's labels meet every requirement.
    pub fn matches(&self, object: &Value) -> bool {
        let label = |key: &str| object["metadata"]["labels"].get(key).and_then(Value::as_str);
        self.0.iter().all(|requirement| match requirement {
            LabelRequirement::Exists(key) => label(key).is_some(),
            LabelRequirement::Absent(key) => label(key).is_none(),
            LabelRequirement::In(key, values) => {
                label(key).is_some_and(|value| values.iter().any(|one| one == value))
            }
            // An object without the label is not in the set either: Kubernetes' rule.
            LabelRequirement::NotIn(key, values) => {
                label(key).is_none_or(|value| values.iter().all(|one| one != value))
            }
        })
    }

    /// Whether everything matches.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn unreadable(text: &str, part: &str) -> StatusError {
    StatusError::bad_request(format!("unable to parse the label selector {text:?}: {part}"))
}

fn split_outside_parentheses(text: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    text.split(move |character| {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        character == ',' && depth == 0
    })
    .collect()
}

fn label_requirement(part: &str) -> Option<LabelRequirement> {
    if let Some(key) = part.strip_prefix('!') {
        return Some(LabelRequirement::Absent(label_key(key)?));
    }
    if let Some((head, tail)) = part.split_once('(') {
        let values = tail.strip_suffix(')')?.split(',').map(label_value);
        let values = values.collect::<Option<Vec<_>>>()?;
        let mut words = head.split_whitespace();
        let (key, operator) = (label_key(words.next()?)?, words.next()?);
        return match (operator, words.next()) {
            ("in", None) => Some(LabelRequirement::In(key, values)),
            ("notin", None) => Some(LabelRequirement::NotIn(key, values)),
            _ => None,
        };
    }
    if let Some((key, value)) = part.split_once("!=") {
        return Some(LabelRequirement::NotIn(label_key(key)?, vec![label_value(value)?]));
    }
    if let Some((key, value)) = part.split_once('=') {
        let value = value.strip_prefix('=').unwrap_or(value);
        return Some(LabelRequirement::In(label_key(key)?, vec![label_value(value)?]));
    }
    label_key(part).map(LabelRequirement::Exists)
}

fn label_key(text: &str) -> Option<String> {
    let key = text.trim();
    crate::engine::names::qualified(key).then(|| key.to_owned())
}

fn label_value(text: &str) -> Option<String> {
    let value = text.trim();
    crate::engine::names::label_value(value).then(|| value.to_owned())
}

/// A field selector: every requirement must hold. The default selects everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldSelector(Vec<FieldRequirement>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct FieldRequirement {
    field: String,
    path: JsonPath,
    value: String,
    equal: bool,
}

impl FieldSelector {
    /// Reads `metadata.name=x,status.phase!=y`; a comma, equals sign or backslash inside a value is
    /// written with a backslash before it.
    ///
    /// # Errors
    /// 400 with the part that cannot be read.
    pub fn parse(text: &str) -> Result<Self, StatusError> {
        let parts = split_unescaped(text);
        if parts.len() > MAX_REQUIREMENTS {
            return Err(StatusError::bad_request("too many requirements in the field selector"));
        }
        let parts = parts.into_iter().filter(|part| !part.trim().is_empty());
        parts
            .map(|part| {
                field_requirement(part).ok_or_else(|| {
                    StatusError::bad_request(format!(
                        "invalid field selector {text:?}: cannot read {part:?}"
                    ))
                })
            })
            .collect::<Result<Vec<_>, _>>()
            .map(Self)
    }

    /// The selector of one object by name.
    pub fn name(name: &str) -> Self {
        let field = "metadata.name".to_owned();
        let path = JsonPath::dotted(&field);
        Self(vec![FieldRequirement { field, path, value: name.to_owned(), equal: true }])
    }

    /// Checks that the kind lets itself be selected by these fields.
    ///
    /// # Errors
    /// 400 naming the first field that cannot be selected.
    pub fn check(&self, definition: &ResourceDefinition) -> Result<(), StatusError> {
        for requirement in &self.0 {
            let field = &requirement.field;
            let known = field == "metadata.name"
                || field == "metadata.namespace"
                || definition.selectable_fields.contains(field);
            if !known {
                return Err(StatusError::bad_request(format!(
                    "field label not supported: {field}"
                )));
            }
        }
        Ok(())
    }

    /// Whether the object's fields meet every requirement; a field that is missing reads as empty.
    pub fn matches(&self, object: &Value) -> bool {
        self.0.iter().all(|requirement| {
            let found = requirement.path.first(object).map(printed).unwrap_or_default();
            (found == requirement.value) == requirement.equal
        })
    }

    /// Whether everything matches.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn split_unescaped(text: &str) -> Vec<&str> {
    let mut escaped = false;
    text.split(move |character| {
        let here = character == ',' && !escaped;
        escaped = character == '\\' && !escaped;
        here
    })
    .collect()
}

fn field_requirement(part: &str) -> Option<FieldRequirement> {
    let at = part.find(['=', '!'])?;
    let (field, rest) = (part.get(..at)?.trim(), part.get(at..)?);
    let (value, equal) = if let Some(value) = rest.strip_prefix("!=") {
        (value, false)
    } else {
        let value = rest.strip_prefix('=')?;
        (value.strip_prefix('=').unwrap_or(value), true)
    };
    let readable = !field.is_empty()
        && field.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'_');
    let path = JsonPath::dotted(field);
    let value = unescape(value)?;
    readable.then(|| FieldRequirement { field: field.to_owned(), path, value, equal })
}

fn unescape(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => out.push(characters.next().filter(|next| "\\,=".contains(*next))?),
            '=' => return None,
            other => out.push(other),
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::{FieldSelector, LabelSelector};
    use serde_json::json;

    #[test]
    fn labels() {
        let object = json!({ "metadata": { "labels": { "a": "1", "x.y/b": "", "tier": "web" } } });
        for (selector, expected) in [
            ("", true),
            ("a=1", true),
            ("a==1", true),
            ("a=2", false),
            ("a!=2", true),
            ("a!=1", false),
            ("missing!=1", true),
            ("x.y/b", true),
            ("x.y/b=", true),
            ("!x.y/b", false),
            ("!missing", true),
            ("tier in (web, db)", true),
            ("tier in (db)", false),
            ("tier notin (db,web)", false),
            ("missing notin (db)", true),
            ("a=1,tier in (web),!missing", true),
            ("a=1,tier in (db),!missing", false),
            ("a in ()", false),
            ("x.y/b in ()", true),
        ] {
            let parsed = LabelSelector::parse(selector).unwrap();
            assert_eq!(parsed.matches(&object), expected, "{selector}");
        }
        for bad in ["a in b", "a of (b)", "=x", "!", "a b", "-a", "a=b=c", "a in (b", "a=(b)"] {
            assert!(LabelSelector::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn fields() {
        let object = json!({ "metadata": { "name": "n" }, "o": { "count": 3, "text": "a,b=c\\" } });
        for (selector, expected) in [
            ("", true),
            ("metadata.name=n", true),
            ("metadata.name!=n", false),
            ("o.count=3", true),
            ("o.missing=", true),
            ("o.text=a\\,b\\=c\\\\,metadata.name==n", true),
        ] {
            let parsed = FieldSelector::parse(selector).unwrap();
            assert_eq!(parsed.matches(&object), expected, "{selector}");
        }
        for bad in ["metadata.name", "=x", "a b=c", "a=b=c", "a!b", "a=\\x"] {
            assert!(FieldSelector::parse(bad).is_err(), "{bad}");
        }
        assert_eq!(FieldSelector::name("n"), FieldSelector::parse("metadata.name=n").unwrap());
    }
}
