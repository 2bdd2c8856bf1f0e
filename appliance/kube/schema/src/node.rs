//! Tree of a parsed schema, with accessors for other crates.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::text::format::Format;
use crate::text::pattern::Pattern;

/// Rule for properties that the schema does not name (`additionalProperties`).
#[derive(Debug, Clone, PartialEq)]
pub enum Additional {
    /// True allows any value, false no additional property.
    Any(bool),
    /// Schema of the values.
    Of(Box<Node>),
}

/// Identity of the items of a list (`x-kubernetes-list-type`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListType {
    /// The list is one value; its items have no identity.
    Atomic,
    /// Items are unique scalars.
    Set,
    /// Items are objects, identified by their key fields.
    Map,
}

/// Rule of `x-kubernetes-validations` in source form.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rule {
    /// Rule as a CEL expression.
    pub rule: String,
    /// Message for a value that violates the rule.
    pub message: String,
    /// CEL expression that computes the message.
    pub message_expression: String,
    /// Reason, such as `FieldValueInvalid`; empty for the default.
    pub reason: String,
    /// JSONPath of the field that the error reports, relative to the rule's schema.
    pub field_path: String,
    /// True if `oldSelf` is an optional and the rule also runs on create; `None` if not set.
    pub optional_old_self: Option<bool>,
}

/// Schema of one value.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Node {
    pub(crate) kind: String,
    pub(crate) description: String,
    pub(crate) title: String,
    pub(crate) nullable: bool,
    pub(crate) default: Option<Value>,
    pub(crate) properties: BTreeMap<String, Node>,
    pub(crate) additional: Option<Additional>,
    pub(crate) items: Option<Box<Node>>,
    pub(crate) limits: Limits,
    pub(crate) required: Vec<String>,
    pub(crate) allowed: Vec<Value>,
    pub(crate) all_of: Vec<Node>,
    pub(crate) any_of: Vec<Node>,
    pub(crate) one_of: Vec<Node>,
    pub(crate) not: Option<Box<Node>>,
    pub(crate) preserve_unknown: bool,
    pub(crate) embedded: bool,
    pub(crate) int_or_string: bool,
    pub(crate) list_type: Option<String>,
    pub(crate) list_map_keys: Vec<String>,
    pub(crate) map_type: Option<String>,
    pub(crate) rules: Vec<Rule>,
    /// Keywords of JSON Schema that are present but not allowed.
    pub(crate) unsupported: Vec<&'static str>,
    /// True if `x-kubernetes-preserve-unknown-fields` is set to false.
    pub(crate) refuses_unknown: bool,
}

/// Value validations with one number, word or flag.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Limits {
    pub format: Option<Format>,
    /// Name of the format as in the source, known or not.
    pub format_name: String,
    pub maximum: Option<f64>,
    pub exclusive_maximum: bool,
    pub minimum: Option<f64>,
    pub exclusive_minimum: bool,
    pub multiple_of: Option<f64>,
    pub max_length: Option<i64>,
    pub min_length: Option<i64>,
    pub max_items: Option<i64>,
    pub min_items: Option<i64>,
    pub unique_items: bool,
    pub max_properties: Option<i64>,
    pub min_properties: Option<i64>,
    pub pattern: Option<Pattern>,
}

impl Node {
    /// Returns `object`, `array`, `string`, `integer`, `number` or `boolean`; empty if untyped.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Returns the description; empty without one.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Returns true if the field may be null.
    pub fn nullable(&self) -> bool {
        self.nullable
    }

    /// Returns the default of an absent field; `None` without one.
    pub fn default_value(&self) -> Option<&Value> {
        self.default.as_ref()
    }

    /// Returns the named properties, sorted by name.
    pub fn properties(&self) -> &BTreeMap<String, Node> {
        &self.properties
    }

    /// Returns the rule for properties that the schema does not name.
    pub fn additional(&self) -> Option<&Additional> {
        self.additional.as_ref()
    }

    /// Returns the schema of `additionalProperties`; `None` if it is a boolean or absent.
    pub fn additional_node(&self) -> Option<&Node> {
        match &self.additional {
            Some(Additional::Of(node)) => Some(node),
            _ => None,
        }
    }

    /// Returns the schema of a list's items.
    pub fn items(&self) -> Option<&Node> {
        self.items.as_deref()
    }

    /// Returns the schema of the field `name`: of the named property, or of `additionalProperties`.
    pub fn child(&self, name: &str) -> Option<&Node> {
        self.properties.get(name).or_else(|| self.additional_node())
    }

    /// Returns the schema at a path of property names; the path cannot go through lists.
    pub fn at(&self, path: &[&str]) -> Option<&Node> {
        path.iter().try_fold(self, |node, name| node.child(name))
    }

    /// Returns the names of the required fields.
    pub fn required(&self) -> &[String] {
        &self.required
    }

    /// Returns the value of `format`, known or not; empty without one.
    pub fn format(&self) -> &str {
        &self.limits.format_name
    }

    /// Returns true for an embedded resource: a Kubernetes object with its own type and metadata.
    pub fn is_embedded_resource(&self) -> bool {
        self.embedded
    }

    /// Returns true if the value, or a value below it, is an embedded resource. The recursion is
    /// limited by [`crate::MAX_SCHEMA_DEPTH`].
    pub(crate) fn embeds(&self) -> bool {
        let below = self.properties.values().chain(self.items()).chain(self.additional_node());
        self.embedded || below.into_iter().any(Self::embeds)
    }

    /// Returns true if the value may be an integer or a string.
    pub fn is_int_or_string(&self) -> bool {
        self.int_or_string
    }

    /// Returns the identity of list items; `None` means upstream's default, atomic.
    pub fn list_type(&self) -> Option<ListType> {
        match self.list_type.as_deref() {
            Some("atomic") => Some(ListType::Atomic),
            Some("set") => Some(ListType::Set),
            Some("map") => Some(ListType::Map),
            _ => None,
        }
    }

    /// Returns the key fields of the items in a list of type map.
    pub fn list_map_keys(&self) -> &[String] {
        &self.list_map_keys
    }

    /// Returns the CEL rules in source form.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Returns the type of a value as in upstream's messages.
    pub(crate) fn type_words(&self) -> &str {
        if self.int_or_string { "integer,string" } else { &self.kind }
    }

    pub(crate) fn accepts(&self, kind: &str) -> bool {
        match self.int_or_string {
            true => matches!(kind, "integer" | "string"),
            false => self.kind == kind,
        }
    }
}
