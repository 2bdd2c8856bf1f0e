//! Conversion of OpenAPI schemas, as JSON, to merge schemas (kube-openapi,
//! `pkg/schemaconv/openapi.go`).

use std::collections::BTreeMap;

use serde_json::{Map as Object, Value};

use crate::schema::{Atom, Field, List, Map, Scalar, Schema, TypeId};

/// Kubernetes type whose values differ from its OpenAPI schema.
const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";
const RAW_EXTENSION: &str = "io.k8s.apimachinery.pkg.runtime.RawExtension";

/// Reason why an OpenAPI schema cannot be converted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unconvertible {
    /// A `$ref` or the root refers to a missing model.
    #[error("no type found matching: {0}")]
    NoModel(String),
    /// The `type` is not an OpenAPI type.
    #[error("unrecognized type: {0:?}")]
    Type(String),
    /// An `x-kubernetes-*` extension has an invalid value.
    #[error("unknown {extension} {value}")]
    Extension {
        /// Name of the extension.
        extension: &'static str,
        /// Value of the extension.
        value: String,
    },
    /// A list of type map has no keys.
    #[error("`x-kubernetes-list-map-keys` must be specified on lists of type map")]
    NoKeys,
    /// An array has no `items`.
    #[error("`items` must be specified on arrays")]
    NoItems,
    /// An atomic map type is set on a type that is neither object nor array.
    #[error("only objects and arrays can be made atomic, not {0}")]
    NotAContainer(String),
}

impl Schema {
    /// Creates the merge schema for objects of the model `root`. `models` are OpenAPI schemas by
    /// name; the last segment of a `$ref` is such a name.
    ///
    /// # Errors
    /// A model is invalid or refers to a missing model.
    pub fn from_openapi(
        models: &BTreeMap<String, Value>,
        root: &str,
    ) -> Result<Self, Unconvertible> {
        let mut schema = Self::deduced();
        let named: BTreeMap<&str, TypeId> =
            models.keys().map(|name| (name.as_str(), schema.declare())).collect();
        let mut convert = Convert { schema, named, overridden: Vec::new() };
        for (name, model) in models {
            let atom = match name.as_str() {
                QUANTITY => Atom { scalar: Some(Scalar::Untyped), ..Atom::default() },
                RAW_EXTENSION => convert.schema.atom(Self::ATOMIC).clone(),
                _ => convert.atom(model, false)?,
            };
            let id = convert.find(name)?;
            convert.schema.define(id, atom);
        }
        for (id, name, atomic) in std::mem::take(&mut convert.overridden) {
            let target = convert.find(&name)?;
            let mut atom = convert.schema.atom(target).clone();
            match (&mut atom.map, &mut atom.list) {
                (Some(map), _) => map.atomic = atomic,
                (None, Some(list)) => list.atomic = atomic,
                (None, None) => return Err(Unconvertible::NotAContainer(name)),
            }
            convert.schema.define(id, atom);
        }
        let root = convert.find(root)?;
        Ok(convert.schema.rooted(root))
    }
}

struct Convert<'m> {
    schema: Schema,
    named: BTreeMap<&'m str, TypeId>,
    /// References that override the `atomic` setting of their type; resolved after the conversion
    /// of all types.
    overridden: Vec<(TypeId, String, bool)>,
}

impl Convert<'_> {
    fn find(&self, name: &str) -> Result<TypeId, Unconvertible> {
        self.named.get(name).copied().ok_or_else(|| Unconvertible::NoModel(name.to_owned()))
    }

    /// Returns the type of a schema inside another: a reference or an inline schema.
    fn of(&mut self, model: &Value, preserve: bool) -> Result<TypeId, Unconvertible> {
        if let Some(name) = reference(model) {
            let target = self.find(name)?;
            let Some(atomic) = map_type(model)? else { return Ok(target) };
            let id = self.schema.declare();
            self.overridden.push((id, name.to_owned(), atomic));
            return Ok(id);
        }
        let atom = self.atom(model, preserve)?;
        Ok(self.schema.inline(atom))
    }

    /// Converts a model; `preserve` allows undeclared fields at this level and below.
    fn atom(&mut self, model: &Value, preserve: bool) -> Result<Atom, Unconvertible> {
        let preserve = preserve || model["x-kubernetes-preserve-unknown-fields"] == true;
        let kind = match &model["type"] {
            Value::Array(kinds) => kinds.first().and_then(Value::as_str),
            kind => kind.as_str(),
        };
        let scalar = |scalar| Ok(Atom { scalar: Some(scalar), ..Atom::default() });
        match kind.unwrap_or_default() {
            "" => Ok(Atom {
                scalar: Some(Scalar::Untyped),
                list: Some(self.list(model, preserve)?),
                map: Some(self.map(model, preserve)?),
            }),
            "object" => Ok(Atom { map: Some(self.map(model, preserve)?), ..Atom::default() }),
            "array" => Ok(Atom { list: Some(self.list(model, preserve)?), ..Atom::default() }),
            "integer" | "number" => scalar(Scalar::Numeric),
            "boolean" => scalar(Scalar::Boolean),
            "string" => match model["format"].as_str().unwrap_or_default() {
                "" | "byte" => scalar(Scalar::String),
                _ => scalar(Scalar::Untyped),
            },
            other => Err(Unconvertible::Type(other.to_owned())),
        }
    }

    fn map(&mut self, model: &Value, preserve: bool) -> Result<Map, Unconvertible> {
        let none = Object::new();
        let properties = model["properties"].as_object().unwrap_or(&none);
        let mut fields = BTreeMap::new();
        for (name, property) in properties {
            let of = self.of(property, preserve)?;
            let default = property.get("default").filter(|value| !value.is_null()).cloned();
            fields.insert(name.clone(), Field { of, default });
        }
        let element = match &model["additionalProperties"] {
            Value::Null if preserve || properties.is_empty() => Some(Schema::DEDUCED),
            Value::Null | Value::Bool(false) => None,
            Value::Bool(true) => Some(Schema::DEDUCED),
            of => Some(self.of(of, preserve)?),
        };
        Ok(Map { fields, element, atomic: map_type(model)?.unwrap_or(false) })
    }

    fn list(&mut self, model: &Value, preserve: bool) -> Result<List, Unconvertible> {
        let (atomic, keys) = list_type(model)?;
        let element = match &model["items"] {
            Value::Null if model["type"].is_null() => Schema::ATOMIC,
            Value::Null => return Err(Unconvertible::NoItems),
            of => self.of(of, preserve)?,
        };
        Ok(List { element, atomic, keys })
    }
}

/// Returns the name in `$ref`. The `$ref` may be the only element of an `allOf`, so that other
/// keywords can stand beside it.
fn reference(model: &Value) -> Option<&str> {
    let holder = match (&model["$ref"], model["allOf"].as_array().map(Vec::as_slice)) {
        (Value::String(_), _) => model,
        (_, Some([only])) => only,
        _ => return None,
    };
    let name = holder["$ref"].as_str()?.rsplit('/').next()?;
    (!name.is_empty()).then_some(name)
}

fn map_type(model: &Value) -> Result<Option<bool>, Unconvertible> {
    match &model["x-kubernetes-map-type"] {
        Value::Null => Ok(None),
        Value::String(word) if word == "atomic" => Ok(Some(true)),
        Value::String(word) if word == "granular" => Ok(Some(false)),
        other => Err(unknown("x-kubernetes-map-type", other)),
    }
}

/// Returns true if the list is atomic, and the list's keys. Built-in kinds use the older keywords
/// of strategic merge patch.
fn list_type(model: &Value) -> Result<(bool, Vec<String>), Unconvertible> {
    const LIST: &str = "x-kubernetes-list-type";
    const PATCH: &str = "x-kubernetes-patch-strategy";
    match &model[LIST] {
        Value::Null => {}
        Value::String(word) if word == "atomic" => return Ok((true, Vec::new())),
        Value::String(word) if word == "set" => return Ok((false, Vec::new())),
        Value::String(word) if word == "map" => {
            let keys = model["x-kubernetes-list-map-keys"].as_array();
            let keys = keys.ok_or(Unconvertible::NoKeys)?;
            let keys = keys.iter().filter_map(Value::as_str).map(str::to_owned);
            return Ok((false, keys.collect()));
        }
        other => return Err(unknown(LIST, other)),
    }
    match &model[PATCH] {
        Value::Null => Ok((true, Vec::new())),
        Value::String(word) if word == "retainKeys" => Ok((true, Vec::new())),
        Value::String(word) if word == "merge" || word == "merge,retainKeys" => {
            match &model["x-kubernetes-patch-merge-key"] {
                Value::Null => Ok((false, Vec::new())),
                Value::String(key) => Ok((false, vec![key.clone()])),
                other => Err(unknown("x-kubernetes-patch-merge-key", other)),
            }
        }
        other => Err(unknown(PATCH, other)),
    }
}

fn unknown(extension: &'static str, value: &Value) -> Unconvertible {
    Unconvertible::Extension { extension, value: value.to_string() }
}

#[cfg(test)]
mod tests;
