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
    /// Parses an `openAPIV3Schema`. Fails if the value does not have the structure of a JSON Schema
    /// or exceeds a limit. `check_structural` checks if the schema is *structural*.
    pub fn parse(source: &Value) -> Result<Self, SchemaError> {
        let root = parse::root(source)?;
        let rules = RuleTree::of(&root);
        let embeds = root.embeds();
        Ok(Self { source: source.clone(), root, rules, embeds })
    }

    /// JSON source of the schema, unchanged.
    pub fn source(&self) -> &Value {
        &self.source
    }

    /// Schema of the object itself.
    pub fn root(&self) -> &Node {
        &self.root
    }
}
