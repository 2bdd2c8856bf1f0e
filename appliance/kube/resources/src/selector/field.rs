//! Field selectors (`k8s.io/apimachinery` `pkg/fields`).

use serde_json::Value;

use super::MAX_REQUIREMENTS;
use crate::definition::ResourceDefinition;
use crate::definition::json_path::{JsonPath, printed};
use crate::status_error::StatusError;

/// Field selector, all of whose requirements must match. The default selects all objects.
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
    /// Parses `metadata.name=x,status.phase!=y`. A comma, equals sign or backslash inside a value
    /// is escaped with a backslash.
    ///
    /// # Errors
    /// 400 for an invalid selector, with the part that cannot be parsed.
    pub fn parse(text: &str) -> Result<Self, StatusError> {
        let parts = split_unescaped(text);
        if parts.len() > MAX_REQUIREMENTS {
            return Err(StatusError::bad_request("too many requirements in the field selector"));
        }
        let parts = parts.into_iter().filter(|part| !part.is_empty());
        parts.map(|part| requirement(text, part)).collect::<Result<Vec<_>, _>>().map(Self)
    }

    /// Makes a selector for the objects with the name `name`.
    pub fn name(name: &str) -> Self {
        let field = "metadata.name".to_owned();
        let path = JsonPath::dotted(&field);
        Self(vec![FieldRequirement { field, path, value: name.to_owned(), equal: true }])
    }

    /// Checks that the kind supports selection by the fields of this selector.
    ///
    /// # Errors
    /// 400 with the first unsupported field.
    pub fn check(&self, definition: &ResourceDefinition) -> Result<(), StatusError> {
        for requirement in &self.0 {
            let field = &requirement.field;
            let known = field == "metadata.name"
                || field == "metadata.namespace"
                || definition.selectable_fields.contains(field);
            if known {
                continue;
            }
            // Upstream has one common check for kinds without selectable fields of their own.
            let shared = definition.native && definition.selectable_fields.is_empty();
            return Err(StatusError::bad_request(match shared {
                true => format!(
                    "{} is not a known field selector: only \"metadata.name\", \
                     \"metadata.namespace\"",
                    go_text::quoted(field)
                ),
                false => format!("field label not supported: {field}"),
            }));
        }
        Ok(())
    }

    /// Evaluates the requirements on name and namespace. Returns `None` if these do not match;
    /// otherwise true if requirements on other fields exist.
    pub(crate) fn beyond_the_key(&self, namespace: &str, name: &str) -> Option<bool> {
        let mut beyond = false;
        for requirement in &self.0 {
            let known = match requirement.field.as_str() {
                "metadata.name" => name,
                "metadata.namespace" => namespace,
                _ => {
                    beyond = true;
                    continue;
                }
            };
            if (known == requirement.value) != requirement.equal {
                return None;
            }
        }
        Some(beyond)
    }

    /// Returns the name that `metadata.name=NAME` requires; `None` without such a requirement.
    pub fn only_name(&self) -> Option<&str> {
        let named = self.0.iter().find(|one| one.field == "metadata.name" && one.equal);
        named.map(|one| one.value.as_str())
    }

    /// Returns true if the object's fields match all requirements; a missing field counts as empty.
    pub fn matches(&self, object: &Value) -> bool {
        self.0.iter().all(|requirement| {
            let found = requirement.path.first(object).map(printed).unwrap_or_default();
            (found == requirement.value) == requirement.equal
        })
    }

    /// Returns true if the selector has no requirements.
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

fn requirement(text: &str, part: &str) -> Result<FieldRequirement, StatusError> {
    let unclear = || {
        StatusError::bad_request(format!("invalid selector: '{text}'; can't understand '{part}'"))
    };
    // The first operator of the text counts.
    let starts = part.char_indices().map(|(at, _)| at);
    let found = starts.filter_map(|at| {
        let rest = part.get(at..)?;
        let operator = ["!=", "==", "="].into_iter().find(|one| rest.starts_with(one))?;
        Some((at, operator))
    });
    let (at, operator) = found.take(1).next().ok_or_else(unclear)?;
    let (field, rest) = part.split_at_checked(at).ok_or_else(unclear)?;
    let value = unescape(rest.strip_prefix(operator).unwrap_or_default())?;
    let path = JsonPath::dotted(field);
    Ok(FieldRequirement { field: field.to_owned(), path, value, equal: operator != "!=" })
}

fn unescape(text: &str) -> Result<String, StatusError> {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some(next) if "\\,=".contains(next) => out.push(next),
                next => {
                    let next = next.map(String::from).unwrap_or_default();
                    let why = format!("invalid field selector: invalid escape sequence: \\{next}");
                    return Err(StatusError::bad_request(why));
                }
            },
            '=' => {
                // Upstream prints the character's number.
                let why = "invalid field selector: unescaped character in value: 61";
                return Err(StatusError::bad_request(why));
            }
            other => out.push(other),
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::FieldSelector;

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
        for (bad, why) in [
            ("a=b=c", "invalid field selector: unescaped character in value: 61"),
            (
                "metadata.name",
                "invalid selector: 'metadata.name'; can't understand 'metadata.name'",
            ),
            ("a=\\x", "invalid field selector: invalid escape sequence: \\x"),
            ("a=\\", "invalid field selector: invalid escape sequence: \\"),
            ("a!b", "invalid selector: 'a!b'; can't understand 'a!b'"),
        ] {
            assert_eq!(FieldSelector::parse(bad).unwrap_err().message, why);
        }
        assert_eq!(FieldSelector::name("n"), FieldSelector::parse("metadata.name=n").unwrap());
    }
}
