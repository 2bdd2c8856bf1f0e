//! Label selectors of objects (apimachinery `meta/v1.LabelSelector`).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Selector of objects by their labels. All requirements must match; an empty selector selects
/// every object.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LabelSelector {
    /// Labels that an object must have with these values.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, String>,
    /// Further requirements on single labels.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub match_expressions: Vec<LabelRequirement>,
}

/// Requirement on one label.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LabelRequirement {
    /// Key of the label.
    pub key: String,
    /// Operator: `In`, `NotIn`, `Exists` or `DoesNotExist`.
    pub operator: String,
    /// Values for `In` and `NotIn`; empty for the other operators.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
}

/// Error in a requirement, for which Kubernetes rejects the whole selector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    /// The operator is unknown.
    #[error("label {key}: expected In, NotIn, Exists or DoesNotExist, found {operator:?}")]
    Operator {
        /// Key of the label.
        key: String,
        /// Operator in the requirement.
        operator: String,
    },
    /// The operator needs at least one value.
    #[error("label {key}: {operator} needs at least one value")]
    NoValues {
        /// Key of the label.
        key: String,
        /// Operator in the requirement.
        operator: String,
    },
    /// The operator allows no values.
    #[error("label {key}: {operator} allows no values")]
    Values {
        /// Key of the label.
        key: String,
        /// Operator in the requirement.
        operator: String,
    },
}

impl LabelSelector {
    /// Checks the requirements.
    ///
    /// # Errors
    /// The first invalid requirement.
    pub fn check(&self) -> Result<(), SelectorError> {
        self.match_expressions.iter().try_for_each(LabelRequirement::check)
    }

    /// Returns true if the selector selects an object with `labels`. A selector with an invalid
    /// requirement selects no object.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        let has = |(key, value): (&String, &String)| labels.get(key) == Some(value);
        self.check().is_ok()
            && self.match_labels.iter().all(has)
            && self.match_expressions.iter().all(|it| it.matches(labels))
    }
}

impl LabelRequirement {
    fn check(&self) -> Result<(), SelectorError> {
        let (key, operator) = (self.key.clone(), self.operator.clone());
        match self.operator.as_str() {
            "In" | "NotIn" if self.values.is_empty() => {
                Err(SelectorError::NoValues { key, operator })
            }
            "Exists" | "DoesNotExist" if !self.values.is_empty() => {
                Err(SelectorError::Values { key, operator })
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => Ok(()),
            _ => Err(SelectorError::Operator { key, operator }),
        }
    }

    fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        let label = labels.get(&self.key);
        let is_listed = label.is_some_and(|value| self.values.contains(value));
        match self.operator.as_str() {
            "In" => is_listed,
            // As in Kubernetes, an object without the label matches.
            "NotIn" => !is_listed,
            "Exists" => label.is_some(),
            "DoesNotExist" => label.is_none(),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value, json};

    use super::LabelSelector;

    fn selector(json: Value) -> LabelSelector {
        serde_json::from_value(json).unwrap()
    }

    fn labels() -> BTreeMap<String, String> {
        [("rack", "a"), ("gpu", "")].map(|(key, value)| (key.into(), value.into())).into()
    }

    #[test]
    fn each_operator_selects_as_in_kubernetes() {
        let one = |key: &str, operator: &str, values: &[&str]| {
            let requirement = json!({ "key": key, "operator": operator, "values": values });
            json!({ "matchExpressions": [requirement] })
        };
        let rows = [
            (json!({}), true),
            (json!({ "matchLabels": { "rack": "a", "gpu": "" } }), true),
            (json!({ "matchLabels": { "rack": "a", "disk": "" } }), false),
            (one("rack", "In", &["b", "a"]), true),
            (one("rack", "In", &["b"]), false),
            (one("disk", "In", &["b"]), false),
            (one("rack", "NotIn", &["b"]), true),
            (one("rack", "NotIn", &["a"]), false),
            (one("disk", "NotIn", &["b"]), true),
            (one("gpu", "Exists", &[]), true),
            (one("disk", "Exists", &[]), false),
            (one("disk", "DoesNotExist", &[]), true),
            (one("gpu", "DoesNotExist", &[]), false),
        ];
        for (json, expected) in rows {
            assert_eq!(selector(json.clone()).matches(&labels()), expected, "{json}");
            assert_eq!(selector(json).check(), Ok(()));
        }
        let mut both = one("rack", "In", &["a"]);
        both["matchLabels"] = json!({ "rack": "b" });
        assert!(!selector(both).matches(&labels()));
    }

    #[test]
    fn an_invalid_requirement_selects_nothing_and_is_named() {
        let rows = [
            (
                "in",
                json!(["a"]),
                "label rack: expected In, NotIn, Exists or DoesNotExist, found \"in\"",
            ),
            ("NotIn", json!([]), "label rack: NotIn needs at least one value"),
            ("Exists", json!(["a"]), "label rack: Exists allows no values"),
        ];
        for (operator, values, expected) in rows {
            let requirement = json!({ "key": "rack", "operator": operator, "values": values });
            let selector = selector(json!({ "matchExpressions": [requirement] }));
            assert!(!selector.matches(&labels()), "{operator}");
            assert_eq!(selector.check().unwrap_err().to_string(), expected);
        }
    }
}
