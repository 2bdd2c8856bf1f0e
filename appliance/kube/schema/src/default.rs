//! Defaults of absent fields (apiextensions `schema/defaulting/{algorithm,prunenulls}.go`).

use serde_json::Value;

use crate::node::Node;
use crate::object_meta;
use crate::schema::Schema;

/// Maximum number of JSON bytes that defaults add to one object. An object with more defaults
/// exceeds the maximum object size and is rejected later.
const MAX_DEFAULTS_BYTES: usize = 4 * 1024 * 1024;

impl Schema {
    /// Removes nulls in non-nullable fields without default. Fills absent and null fields.
    pub fn default(&self, object: &mut Value) {
        drop_nulls(object, Some(&self.root));
        self.fill_in(object);
    }

    /// Sets the defaults of absent and null fields. Removes unknown fields from the metadata of
    /// embedded resources, which defaults may add.
    pub fn fill_in(&self, object: &mut Value) {
        Filling { left: MAX_DEFAULTS_BYTES }.fill(object, &self.root);
        if self.embeds {
            clean_embedded(object, &self.root);
        }
    }
}

fn clean_embedded(value: &mut Value, node: &Node) {
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                if node.embedded && name == "metadata" {
                    object_meta::clean(value, "");
                } else if let Some(below) = node.child(name) {
                    clean_embedded(value, below);
                }
            }
        }
        Value::Array(items) => {
            if let Some(below) = node.items() {
                items.iter_mut().for_each(|item| clean_embedded(item, below));
            }
        }
        _ => {}
    }
}

fn drop_nulls(value: &mut Value, node: Option<&Node>) {
    let Some(node) = node else { return };
    match value {
        Value::Object(map) => map.retain(|name, value| {
            let below = node.child(name);
            let dropped = value.is_null()
                && below.is_some_and(|below| !below.nullable && below.default.is_none());
            if !dropped {
                drop_nulls(value, below);
            }
            !dropped
        }),
        Value::Array(items) => {
            for item in items {
                drop_nulls(item, node.items());
            }
        }
        _ => {}
    }
}

struct Filling {
    /// Number of bytes that defaults may still add.
    left: usize,
}

impl Filling {
    /// Returns the default of a field; `None` if there is none, or it exceeds the limit `left`.
    fn default_of(&mut self, node: &Node, name: &str) -> Option<Value> {
        let default = node.default.as_ref()?;
        let bytes = name.len() + default.to_string().len();
        match self.left.checked_sub(bytes) {
            Some(left) => self.left = left,
            None => {
                self.left = 0;
                return None;
            }
        }
        Some(default.clone())
    }

    fn fill(&mut self, value: &mut Value, node: &Node) {
        let is_missing = |value: Option<&Value>, node: &Node| match value {
            None => true,
            Some(value) => value.is_null() && !node.nullable,
        };
        match value {
            Value::Object(map) => {
                for (name, below) in &node.properties {
                    if is_missing(map.get(name), below)
                        && let Some(default) = self.default_of(below, name)
                    {
                        map.insert(name.clone(), default);
                    }
                }
                for (name, value) in map.iter_mut() {
                    if let Some(below) = node.properties.get(name) {
                        self.fill(value, below);
                    } else if let Some(below) = node.additional_node() {
                        self.fill_null(value, below);
                        self.fill(value, below);
                    }
                }
            }
            Value::Array(items) => {
                if let Some(below) = node.items() {
                    for item in items {
                        self.fill_null(item, below);
                        self.fill(item, below);
                    }
                }
            }
            _ => {}
        }
    }

    fn fill_null(&mut self, value: &mut Value, node: &Node) {
        if value.is_null()
            && !node.nullable
            && let Some(default) = self.default_of(node, "")
        {
            *value = default;
        }
    }
}
