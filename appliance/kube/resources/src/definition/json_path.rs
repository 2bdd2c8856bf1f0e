//! Subset of kubectl's JSONPath for printer columns and selectable fields: dotted members,
//! `['quoted']` members, `[3]`, `[*]`, `.*` and `[?(@.type=="Ready")]`. A backslash escapes the
//! next character: `.metadata.labels.example\.org/name`.

use serde_json::Value;

/// Parsed JSON path of the supported subset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonPath {
    steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Member(String),
    Index(usize),
    Every,
    Where { path: Vec<String>, equals: String, negated: bool },
}

/// Error: the JSON path does not belong to the supported subset.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot read the JSON path {path:?} at byte {at}")]
pub struct InvalidPath {
    path: String,
    at: usize,
}

impl JsonPath {
    /// Parses a path such as `.status.conditions[?(@.type=="Ready")].status`.
    ///
    /// # Errors
    /// Returns an error with the byte offset if the text does not belong to the supported subset.
    pub fn parse(text: &str) -> Result<Self, InvalidPath> {
        let mut steps = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let step = take_step(rest).ok_or_else(|| InvalidPath {
                path: text.to_owned(),
                at: text.len() - rest.len(),
            })?;
            steps.push(step.0);
            rest = step.1;
        }
        Ok(Self { steps })
    }

    /// Makes a path from field names joined by dots, without brackets: `involvedObject.kind`.
    pub fn dotted(text: &str) -> Self {
        let steps = text.split('.').filter(|part| !part.is_empty());
        Self { steps: steps.map(|part| Step::Member(part.to_owned())).collect() }
    }

    /// Returns every value that the path selects, in document order.
    pub fn find<'a>(&self, root: &'a Value) -> Vec<&'a Value> {
        let mut found = vec![root];
        for step in &self.steps {
            found = found.into_iter().flat_map(|value| step.apply(value)).collect();
        }
        found
    }

    /// Returns the first value that the path selects; `None` if the path selects no value.
    pub fn first<'a>(&self, root: &'a Value) -> Option<&'a Value> {
        self.find(root).into_iter().next()
    }
}

impl Step {
    fn apply<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        match self {
            Self::Member(name) => value.get(name).into_iter().collect(),
            Self::Index(index) => value.get(index).into_iter().collect(),
            Self::Every => match value {
                Value::Array(items) => items.iter().collect(),
                Value::Object(map) => map.values().collect(),
                _ => Vec::new(),
            },
            Self::Where { path, equals, negated } => value
                .as_array()
                .into_iter()
                .flatten()
                .filter(|item| {
                    let leaf = path.iter().try_fold(*item, |at, name| at.get(name));
                    leaf.is_some_and(|leaf| (printed(leaf) == *equals) != *negated)
                })
                .collect(),
        }
    }
}

/// Formats a value as kubectl does: strings without quotes, null as empty text, others as JSON.
pub(crate) fn printed(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// Splits `text` before the first of `ends`, and removes escaping backslashes before the split.
fn take_name<'a>(text: &'a str, ends: &[char]) -> Option<(String, &'a str)> {
    let mut name = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => name.push(characters.next()?.1),
            end if ends.contains(&end) => return Some((name, text.get(at..)?)),
            other => name.push(other),
        }
    }
    Some((name, ""))
}

fn take_step(text: &str) -> Option<(Step, &str)> {
    if let Some(rest) = text.strip_prefix('.') {
        let (name, rest) = take_name(rest, &['.', '['])?;
        return match name.as_str() {
            "" => None,
            "*" => Some((Step::Every, rest)),
            _ => Some((Step::Member(name), rest)),
        };
    }
    let inside = text.strip_prefix('[')?;
    if let Some(filter) = inside.strip_prefix("?(@.") {
        let (condition, rest) = filter.split_once(")]")?;
        let negated = condition.contains("!=");
        let (path, literal) = condition.split_once(if negated { "!=" } else { "==" })?;
        let literal = literal.trim();
        let equals = literal.trim_matches(['"', '\'']).to_owned();
        let path = path.trim().split('.').map(str::to_owned).collect();
        return Some((Step::Where { path, equals, negated }, rest));
    }
    if let Some(quoted) = inside.strip_prefix('\'') {
        let (name, rest) = take_name(quoted, &['\''])?;
        return Some((Step::Member(name), rest.strip_prefix("']")?));
    }
    let (inner, rest) = inside.split_once(']')?;
    if inner == "*" {
        return Some((Step::Every, rest));
    }
    Some((Step::Index(inner.parse().ok()?), rest))
}

#[cfg(test)]
mod tests {
    use super::JsonPath;
    use serde_json::json;

    #[test]
    fn finds_what_columns_name() {
        let object = json!({
            "metadata": { "labels": { "a.b/c": "x" } },
            "status": { "conditions": [
                { "type": "Running", "status": "False" },
                { "type": "Completed", "status": "True" },
            ], "ready": true },
        });
        for (path, expected) in [
            (".status.ready", vec![json!(true)]),
            (".status.conditions[1].type", vec![json!("Completed")]),
            (".status.conditions[*].status", vec![json!("False"), json!("True")]),
            (".status.conditions[?(@.type==\"Completed\")].status", vec![json!("True")]),
            (".metadata.labels['a.b/c']", vec![json!("x")]),
            (".metadata.labels['a\\.b/c']", vec![json!("x")]),
            (".metadata.labels.a\\.b/c", vec![json!("x")]),
            (".status.conditions[?(@.type!='Running')].status", vec![json!("True")]),
            (".metadata.labels.*", vec![json!("x")]),
            (".spec.nothing", vec![]),
            (".status.conditions[9]", vec![]),
        ] {
            let found = JsonPath::parse(path).unwrap();
            let found: Vec<_> = found.find(&object).into_iter().cloned().collect();
            assert_eq!(found, expected, "{path}");
        }
    }

    #[test]
    fn refuses_what_it_does_not_know() {
        for path in ["status", ".a..b", ".a[", ".a[x]", ".a[?(@.b)]", ".", "..a", ".a['b", ".a\\"] {
            assert!(JsonPath::parse(path).is_err(), "{path}");
        }
    }
}
