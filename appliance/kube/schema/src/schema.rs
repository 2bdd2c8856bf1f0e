//! Parsed schema of one version of a kind, with its rules.

use serde_json::Value;

use crate::node::Node;
use crate::parse::{self, SchemaError};
use crate::rules::RuleTree;

/// Parsed schema of one version of a kind.
#[derive(Debug, Clone)]
pub struct Schema {
    source: Value,
    pub(crate) root: Node,
    pub(crate) rules: Option<RuleTree>,
    /// True if the schema contains embedded resources.
    pub(crate) embeds: bool,
}

impl Schema {
    /// Parses an `openAPIV3Schema`. Returns an error if the value does not have the structure of a
    /// JSON Schema or exceeds a limit. `check_structural` checks that the schema is *structural*.
    pub fn parse(source: &Value) -> Result<Self, SchemaError> {
        let root = parse::root(source)?;
        let rules = RuleTree::of(&root);
        let embeds = root.embeds();
        Ok(Self { source: source.clone(), root, rules, embeds })
    }

    /// Returns the JSON source of the schema, unchanged.
    pub fn source(&self) -> &Value {
        &self.source
    }

    /// Returns the schema of the whole object.
    pub fn root(&self) -> &Node {
        &self.root
    }
}
