//! The tree a schema is parsed into, and how others read it.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::format::Format;
use crate::parse::{self, SchemaError};
use crate::pattern::Pattern;
use crate::rules::RuleTree;

/// A parsed schema of one version of a kind.
#[derive(Debug, Clone)]
pub struct Schema {
    source: Value,
    pub(crate) root: Node,
    pub(crate) rules: Option<RuleTree>,
    /// Whether objects lie within the object.
    pub(crate) embeds: bool,
}

impl Schema {
    /// Parses an `openAPIV3Schema`. Fails where the value has no JSON Schema shape or is over a
    /// limit; whether it is *structural* is `check_structural`'s question.
    pub fn parse(source: &Value) -> Result<Self, SchemaError> {
        let root = parse::root(source)?;
        let rules = RuleTree::of(&root);
        let embeds = root.embeds();
        Ok(Self { source: source.clone(), root, rules, embeds })
    }

    /// The JSON the schema was parsed from, unchanged.
    pub fn source(&self) -> &Value {
        &self.source
    }

    /// The schema of the object itself.
    pub fn root(&self) -> &Node {
        &self.root
    }
}

/// What may stand beside the named properties of an object.
#[derive(Debug, Clone, PartialEq)]
pub enum Additional {
    /// Anything (`true`) or nothing (`false`).
    Any(bool),
    /// Values of this schema.
    Of(Box<Node>),
}

/// How the items of a list are told apart (`x-kubernetes-list-type`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListType {
    /// The list is one value.
    Atomic,
    /// Items are unique scalars.
    Set,
    /// Items are objects told apart by their keys.
    Map,
}

/// One rule of `x-kubernetes-validations`, as it is written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rule {
    /// The CEL expression.
    pub rule: String,
    /// What to say when it does not hold.
    pub message: String,
    /// A CEL expression for what to say.
    pub message_expression: String,
    /// `FieldValueInvalid` and its like; empty for the default.
    pub reason: String,
    /// JSONPath of the field to blame, relative to where the rule stands.
    pub field_path: String,
    /// `oldSelf` is an optional, and the rule runs on create too.
    pub optional_old_self: Option<bool>,
}

/// One level of a schema.
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
    /// Keywords of JSON Schema that are there and must not be.
    pub(crate) unsupported: Vec<&'static str>,
    /// `x-kubernetes-preserve-unknown-fields` is there and false.
    pub(crate) refuses_unknown: bool,
}

/// The value validations that are one number, word or flag.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Limits {
    pub format: Option<Format>,
    /// The format's name as written, known or not.
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
    /// `object`, `array`, `string`, `integer`, `number`, `boolean`, or empty where none is named.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// The description, empty where there is none.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Whether null is a value of the field.
    pub fn nullable(&self) -> bool {
        self.nullable
    }

    /// The value an absent field takes.
    pub fn default_value(&self) -> Option<&Value> {
        self.default.as_ref()
    }

    /// The named properties, sorted by name.
    pub fn properties(&self) -> &BTreeMap<String, Node> {
        &self.properties
    }

    /// What may stand beside the named properties.
    pub fn additional(&self) -> Option<&Additional> {
        self.additional.as_ref()
    }

    /// The schema of `additionalProperties`, where it is one.
    pub fn additional_node(&self) -> Option<&Node> {
        match &self.additional {
            Some(Additional::Of(node)) => Some(node),
            _ => None,
        }
    }

    /// The schema of a list's items.
    pub fn items(&self) -> Option<&Node> {
        self.items.as_deref()
    }

    /// The schema of the field `name`: its own, or that of `additionalProperties`.
    pub fn child(&self, name: &str) -> Option<&Node> {
        self.properties.get(name).or_else(|| self.additional_node())
    }

    /// The schema at a path of property names, through objects only.
    pub fn at(&self, path: &[&str]) -> Option<&Node> {
        path.iter().try_fold(self, |node, name| node.child(name))
    }

    /// The fields that must be there.
    pub fn required(&self) -> &[String] {
        &self.required
    }

    /// The `format` as written, known or not; empty where there is none.
    pub fn format(&self) -> &str {
        &self.limits.format_name
    }

    /// Whether the value is a whole Kubernetes object with type and metadata of its own.
    pub fn is_embedded_resource(&self) -> bool {
        self.embedded
    }

    /// Whether a whole object lies here or below. No deeper than a schema may be.
    fn embeds(&self) -> bool {
        let below = self.properties.values().chain(self.items()).chain(self.additional_node());
        self.embedded || below.into_iter().any(Self::embeds)
    }

    /// Whether the value is an integer or a string.
    pub fn is_int_or_string(&self) -> bool {
        self.int_or_string
    }

    /// How list items are told apart; none is upstream's default, atomic.
    pub fn list_type(&self) -> Option<ListType> {
        match self.list_type.as_deref() {
            Some("atomic") => Some(ListType::Atomic),
            Some("set") => Some(ListType::Set),
            Some("map") => Some(ListType::Map),
            _ => None,
        }
    }

    /// The fields that tell the items of a list of type map apart.
    pub fn list_map_keys(&self) -> &[String] {
        &self.list_map_keys
    }

    /// The rules in CEL, as written.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// The types a value may have, as upstream's messages join them.
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
