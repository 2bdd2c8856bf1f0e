//! Parser from JSON Schema to [`Node`], with limits on bytes, nodes and depth.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value};

use crate::node::{Additional, Limits, Node, Rule};
use crate::text::format::Format;
use crate::text::pattern::Pattern;

/// Maximum size of one schema in bytes of JSON; the largest in Cluster API has 0.7 MB.
pub const MAX_SCHEMA_BYTES: usize = 2 * 1024 * 1024;

/// Maximum depth of a schema; also limits the recursion of every function over a schema.
pub const MAX_SCHEMA_DEPTH: usize = 64;

/// Maximum number of nodes in one schema: the schemas of values, fields and alternatives.
pub const MAX_SCHEMA_NODES: usize = 50_000;

/// Maximum memory of all compiled patterns of one schema, in bytes.
const MAX_PATTERNS_BYTES: usize = 32 * 1024 * 1024;

/// Maximum number of CEL rules in one schema.
const MAX_RULES: usize = 2_000;

/// Maximum size of all rules of one schema and their message expressions, in bytes.
const MAX_RULES_BYTES: usize = 256 * 1024;

/// Reason why a value is not a valid schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// A keyword has a value of another type than JSON Schema requires.
    #[error("parsing the schema: {path}.{keyword} must be {wanted}")]
    Keyword {
        /// Path from the root of the schema; empty for the root.
        path: String,
        /// Keyword with the invalid value.
        keyword: &'static str,
        /// Expected type of the value.
        wanted: &'static str,
    },
    /// A schema is required, but the value is not an object.
    #[error("parsing the schema: {path} must be an object")]
    NoObject {
        /// Path from the root of the schema.
        path: String,
    },
    /// The schema nests deeper than [`MAX_SCHEMA_DEPTH`].
    #[error("parsing the schema: {path} is nested deeper than {MAX_SCHEMA_DEPTH} levels")]
    TooDeep {
        /// Path from the root of the schema.
        path: String,
    },
    /// The schema has more nodes than [`MAX_SCHEMA_NODES`].
    #[error("parsing the schema: it has more than {MAX_SCHEMA_NODES} nodes")]
    TooManyNodes,
    /// The compiled patterns take more than 32 MiB of memory.
    #[error("parsing the schema: its patterns take more than {MAX_PATTERNS_BYTES} bytes of memory")]
    TooManyPatterns,
    /// The schema has more than 2000 rules, or its rules are longer than 256 KiB.
    #[error(
        "parsing the schema: it has more than {MAX_RULES} rules, or rules of more than \
         {MAX_RULES_BYTES} bytes in all"
    )]
    TooManyRules,
    /// The schema is longer than [`MAX_SCHEMA_BYTES`].
    #[error("parsing the schema: it is longer than {MAX_SCHEMA_BYTES} bytes")]
    TooLong,
}

pub(crate) fn root(source: &Value) -> Result<Node, SchemaError> {
    let mut reader = Reader {
        nodes: 0,
        rules: 0,
        rules_bytes: 0,
        patterns: HashMap::new(),
        patterns_bytes: 0,
        path: Vec::new(),
    };
    // The depth is checked first, because measuring the length recurses as deep as the value nests.
    let node = reader.node(source)?;
    if source.to_string().len() > MAX_SCHEMA_BYTES {
        return Err(SchemaError::TooLong);
    }
    Ok(node)
}

struct Reader {
    nodes: usize,
    rules: usize,
    rules_bytes: usize,
    /// Compiled patterns by text, so that equal patterns are compiled once.
    patterns: HashMap<String, Pattern>,
    patterns_bytes: usize,
    path: Vec<String>,
}

impl Reader {
    fn node(&mut self, source: &Value) -> Result<Node, SchemaError> {
        self.nodes += 1;
        if self.nodes > MAX_SCHEMA_NODES {
            return Err(SchemaError::TooManyNodes);
        }
        if self.path.len() > MAX_SCHEMA_DEPTH {
            return Err(SchemaError::TooDeep { path: self.path() });
        }
        let Value::Object(map) = source else {
            return Err(SchemaError::NoObject { path: self.path() });
        };
        let mut node = Node {
            kind: self.word(map, "type")?,
            description: self.word(map, "description")?,
            title: self.word(map, "title")?,
            nullable: self.flag(map, "nullable")?,
            // A null default counts as absent, as in apiextensions' conversion of JSON.
            default: map.get("default").filter(|value| !value.is_null()).cloned(),
            limits: self.limits(map)?,
            required: self.words(map, "required")?,
            allowed: self.list(map, "enum")?.to_vec(),
            preserve_unknown: self.flag(map, "x-kubernetes-preserve-unknown-fields")?,
            embedded: self.flag(map, "x-kubernetes-embedded-resource")?,
            int_or_string: self.flag(map, "x-kubernetes-int-or-string")?,
            list_type: self.optional_word(map, "x-kubernetes-list-type")?,
            list_map_keys: self.words(map, "x-kubernetes-list-map-keys")?,
            map_type: self.optional_word(map, "x-kubernetes-map-type")?,
            rules: self.rules(map)?,
            unsupported: unsupported(map),
            refuses_unknown: map.get("x-kubernetes-preserve-unknown-fields")
                == Some(&Value::Bool(false)),
            ..Node::default()
        };
        self.children(map, &mut node)?;
        Ok(node)
    }

    fn children(&mut self, map: &Map<String, Value>, node: &mut Node) -> Result<(), SchemaError> {
        node.properties = self.properties(map)?;
        node.additional = match map.get("additionalProperties") {
            None | Some(Value::Null) => None,
            Some(Value::Bool(allows)) => Some(Additional::Any(*allows)),
            Some(other) => {
                let node = self.below("additionalProperties", other)?;
                Some(Additional::Of(Box::new(node)))
            }
        };
        node.items = match map.get("items") {
            None | Some(Value::Null | Value::Array(_)) => None,
            Some(other) => Some(Box::new(self.below("items", other)?)),
        };
        node.not = match map.get("not") {
            None | Some(Value::Null) => None,
            Some(other) => Some(Box::new(self.below("not", other)?)),
        };
        node.all_of = self.alternatives(map, "allOf")?;
        node.any_of = self.alternatives(map, "anyOf")?;
        node.one_of = self.alternatives(map, "oneOf")?;
        Ok(())
    }

    fn below(&mut self, step: &str, source: &Value) -> Result<Node, SchemaError> {
        self.path.push(step.to_owned());
        let node = self.node(source);
        self.path.pop();
        node
    }

    fn properties(
        &mut self,
        map: &Map<String, Value>,
    ) -> Result<BTreeMap<String, Node>, SchemaError> {
        let mut properties = BTreeMap::new();
        match map.get("properties") {
            None | Some(Value::Null) => {}
            Some(Value::Object(fields)) => {
                for (name, source) in fields {
                    let node = self.below(&format!("properties[{name}]"), source)?;
                    properties.insert(name.clone(), node);
                }
            }
            Some(_) => return Err(self.wrong("properties", "an object")),
        }
        Ok(properties)
    }

    fn alternatives(
        &mut self,
        map: &Map<String, Value>,
        keyword: &'static str,
    ) -> Result<Vec<Node>, SchemaError> {
        let sources = self.list(map, keyword)?;
        let each = sources.iter().enumerate();
        each.map(|(index, source)| self.below(&format!("{keyword}[{index}]"), source)).collect()
    }

    fn limits(&mut self, map: &Map<String, Value>) -> Result<Limits, SchemaError> {
        let pattern = self.word(map, "pattern")?;
        let format_name = self.word(map, "format")?;
        Ok(Limits {
            format: Format::named(&format_name),
            format_name,
            maximum: self.number(map, "maximum")?,
            exclusive_maximum: self.flag(map, "exclusiveMaximum")?,
            minimum: self.number(map, "minimum")?,
            exclusive_minimum: self.flag(map, "exclusiveMinimum")?,
            multiple_of: self.number(map, "multipleOf")?,
            max_length: self.count(map, "maxLength")?,
            min_length: self.count(map, "minLength")?,
            max_items: self.count(map, "maxItems")?,
            min_items: self.count(map, "minItems")?,
            unique_items: self.flag(map, "uniqueItems")?,
            max_properties: self.count(map, "maxProperties")?,
            min_properties: self.count(map, "minProperties")?,
            pattern: match pattern.is_empty() {
                true => None,
                false => Some(self.pattern(pattern)?),
            },
        })
    }

    fn pattern(&mut self, text: String) -> Result<Pattern, SchemaError> {
        if let Some(known) = self.patterns.get(&text) {
            return Ok(known.clone());
        }
        let (pattern, bytes) = Pattern::measured(&text);
        self.patterns_bytes = self.patterns_bytes.saturating_add(bytes);
        if self.patterns_bytes > MAX_PATTERNS_BYTES {
            return Err(SchemaError::TooManyPatterns);
        }
        self.patterns.insert(text, pattern.clone());
        Ok(pattern)
    }

    fn rules(&mut self, map: &Map<String, Value>) -> Result<Vec<Rule>, SchemaError> {
        const KEYWORD: &str = "x-kubernetes-validations";
        let mut rules = Vec::new();
        for source in self.list(map, KEYWORD)? {
            let Value::Object(rule) = source else {
                return Err(self.wrong(KEYWORD, "a list of objects"));
            };
            let rule = Rule {
                rule: self.word(rule, "rule")?,
                message: self.word(rule, "message")?,
                message_expression: self.word(rule, "messageExpression")?,
                reason: self.word(rule, "reason")?,
                field_path: self.word(rule, "fieldPath")?,
                optional_old_self: match rule.get("optionalOldSelf") {
                    None | Some(Value::Null) => None,
                    Some(_) => Some(self.flag(rule, "optionalOldSelf")?),
                },
            };
            self.rules += 1;
            self.rules_bytes += rule.rule.len() + rule.message_expression.len();
            if self.rules > MAX_RULES || self.rules_bytes > MAX_RULES_BYTES {
                return Err(SchemaError::TooManyRules);
            }
            rules.push(rule);
        }
        Ok(rules)
    }

    fn optional_word(
        &self,
        map: &Map<String, Value>,
        keyword: &'static str,
    ) -> Result<Option<String>, SchemaError> {
        match map.get(keyword) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(word)) => Ok(Some(word.clone())),
            Some(_) => Err(self.wrong(keyword, "a string")),
        }
    }

    fn word(&self, map: &Map<String, Value>, keyword: &'static str) -> Result<String, SchemaError> {
        Ok(self.optional_word(map, keyword)?.unwrap_or_default())
    }

    fn words(
        &self,
        map: &Map<String, Value>,
        keyword: &'static str,
    ) -> Result<Vec<String>, SchemaError> {
        let words = self.list(map, keyword)?.iter().map(|one| one.as_str().map(str::to_owned));
        words.collect::<Option<_>>().ok_or_else(|| self.wrong(keyword, "a list of strings"))
    }

    fn list<'a>(
        &self,
        map: &'a Map<String, Value>,
        keyword: &'static str,
    ) -> Result<&'a [Value], SchemaError> {
        match map.get(keyword) {
            None | Some(Value::Null) => Ok(&[]),
            Some(Value::Array(items)) => Ok(items),
            Some(_) => Err(self.wrong(keyword, "a list")),
        }
    }

    fn flag(&self, map: &Map<String, Value>, keyword: &'static str) -> Result<bool, SchemaError> {
        match map.get(keyword) {
            None | Some(Value::Null) => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(_) => Err(self.wrong(keyword, "a boolean")),
        }
    }

    fn number(
        &self,
        map: &Map<String, Value>,
        keyword: &'static str,
    ) -> Result<Option<f64>, SchemaError> {
        match map.get(keyword) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => match value.as_f64() {
                Some(number) => Ok(Some(number)),
                None => Err(self.wrong(keyword, "a number")),
            },
        }
    }

    fn count(
        &self,
        map: &Map<String, Value>,
        keyword: &'static str,
    ) -> Result<Option<i64>, SchemaError> {
        match map.get(keyword) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => match value.as_i64() {
                Some(number) => Ok(Some(number)),
                None => Err(self.wrong(keyword, "an integer")),
            },
        }
    }

    fn path(&self) -> String {
        self.path.join(".")
    }

    fn wrong(&self, keyword: &'static str, wanted: &'static str) -> SchemaError {
        SchemaError::Keyword { path: self.path(), keyword, wanted }
    }
}

/// Returns the keywords in `map` that a structural schema must not have.
fn unsupported(map: &Map<String, Value>) -> Vec<&'static str> {
    const KEYWORDS: [&str; 8] = [
        "id",
        "$schema",
        "additionalItems",
        "patternProperties",
        "definitions",
        "dependencies",
        "$ref",
        "items",
    ];
    let is_set = |keyword: &&str| match (*keyword, map.get(*keyword)) {
        (_, None | Some(Value::Null)) => false,
        ("items", Some(value)) => value.is_array(),
        ("id" | "$schema", Some(value)) => value != "",
        ("patternProperties" | "definitions", Some(Value::Object(map))) => !map.is_empty(),
        _ => true,
    };
    KEYWORDS.into_iter().filter(is_set).collect()
}

/// Returns the texts of values for a message.
pub(crate) fn value_words<'v>(values: impl IntoIterator<Item = &'v Value>) -> Vec<String> {
    let word = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => go_text::json(other),
    };
    values.into_iter().map(word).collect()
}
