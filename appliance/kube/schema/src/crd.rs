//! CustomResourceDefinitions: reading one, checking it as apiextensions-apiserver does
//! (`pkg/apis/apiextensions/{v1/defaults,validation/validation}.go`), and filling in its defaults.
//!
//! Enter at [`CustomResourceDefinition::parse`], after [`prune`](fn@prune), [`default`] and
//! [`check`]. Conversion by
//! webhook is refused: nothing here calls out.

mod check;
mod column;
mod format;
mod shape;
mod surface;
mod update;

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::node::Schema;
use crate::parse::SchemaError;

pub use check::{approval_condition, check};
pub use format::warnings;
pub use shape::prune;
pub use update::check_update;

/// The most versions one definition may have.
pub const MAX_VERSIONS: usize = 32;

/// The most selectable fields of one version, as upstream.
pub const MAX_SELECTABLE_FIELDS: usize = 8;

/// The finalizer under which the instances of a deleted definition are removed.
pub const CLEANUP_FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Why a value is no definition of ours.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DefinitionError {
    /// A field is absent or of another type.
    #[error("reading the definition: {0} must be {1}")]
    Field(String, &'static str),
    /// The schema of a version does not parse.
    #[error("reading the definition: version {version}: {source}")]
    Schema {
        /// The version's name.
        version: String,
        /// What is wrong with its schema.
        source: SchemaError,
    },
}

/// Where objects of a kind live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// In a namespace.
    Namespaced,
    /// Beside the namespaces.
    Cluster,
}

/// What a kind is called.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names {
    /// As in the URL.
    pub plural: String,
    /// As kubectl may say it.
    pub singular: String,
    /// As in an object.
    pub kind: String,
    /// As in a list.
    pub list_kind: String,
    /// Abbreviations.
    pub short_names: Vec<String>,
    /// Groups of kinds it belongs to, `all` for one.
    pub categories: Vec<String>,
}

/// A column of the printed table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrinterColumn {
    /// The heading.
    pub name: String,
    /// `integer`, `number`, `string`, `boolean` or `date`.
    pub kind: String,
    /// `int32`, `date-time` and so on; empty for none.
    pub format: String,
    /// What the column tells; empty for none.
    pub description: String,
    /// Above 0 the column shows in wide tables only.
    pub priority: i64,
    /// Where the cell comes from.
    pub json_path: String,
}

/// Where the scale subresource finds its numbers, as dotted paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScalePaths {
    /// Below `.spec`.
    pub spec_replicas: String,
    /// Below `.status`.
    pub status_replicas: String,
    /// Below `.spec` or `.status`, where there is one.
    pub label_selector: Option<String>,
}

/// One version of a kind.
#[derive(Debug, Clone)]
pub struct Version {
    /// `v1alpha1` and its like.
    pub name: String,
    /// Whether requests of this version are answered.
    pub served: bool,
    /// Whether objects are stored in this version.
    pub storage: bool,
    /// Whether requests are answered with a warning.
    pub deprecated: bool,
    /// The warning, where it is not the usual one.
    pub deprecation_warning: Option<String>,
    /// What objects look like.
    pub schema: Option<Arc<Schema>>,
    /// Whether the status is written on its own.
    pub has_status: bool,
    /// Whether, and from where, replicas are read and written.
    pub scale: Option<ScalePaths>,
    /// The columns beside the name; empty for the default ones.
    pub columns: Vec<PrinterColumn>,
    /// JSONPaths of the fields that field selectors may name.
    pub selectable_fields: Vec<String>,
}

/// A definition that has been read.
#[derive(Debug, Clone)]
pub struct CustomResourceDefinition {
    /// `metadata.name`: the plural, a dot, the group.
    pub name: String,
    /// The API group.
    pub group: String,
    /// Where its objects live.
    pub scope: Scope,
    /// What it is called.
    pub names: Names,
    /// Its versions, in the order written.
    pub versions: Vec<Version>,
    /// Versions in which objects may lie in the store.
    pub stored_versions: Vec<String>,
}

impl CustomResourceDefinition {
    /// Reads a definition that [`default`] has completed. Fails where [`check`] would too, and
    /// where fields have other types than a definition's.
    pub fn parse(object: &Value) -> Result<Self, DefinitionError> {
        let spec = Fields::of(object, "spec")?;
        let names = spec.below("names")?;
        let scope = match spec.text("scope")?.as_str() {
            "Namespaced" => Scope::Namespaced,
            "Cluster" => Scope::Cluster,
            _ => {
                let field = "spec.scope".to_owned();
                return Err(DefinitionError::Field(field, "Namespaced or Cluster"));
            }
        };
        let versions = spec.objects("versions")?;
        let status = object.get("status").and_then(|status| status.get("storedVersions"));
        Ok(Self {
            name: Fields::of(object, "metadata")?.text("name")?,
            group: spec.text("group")?,
            scope,
            names: Names {
                plural: names.text("plural")?,
                singular: names.text("singular")?,
                kind: names.text("kind")?,
                list_kind: names.text("listKind")?,
                short_names: names.texts("shortNames")?,
                categories: names.texts("categories")?,
            },
            versions: versions.iter().map(Version::parse).collect::<Result<_, _>>()?,
            stored_versions: match status {
                None => Vec::new(),
                Some(_) => Fields::of(object, "status")?.texts("storedVersions")?,
            },
        })
    }

    /// The version objects are stored in.
    pub fn storage_version(&self) -> Option<&Version> {
        self.versions.iter().find(|version| version.storage)
    }
}

impl Version {
    fn parse(fields: &Fields<'_>) -> Result<Self, DefinitionError> {
        let name = fields.text("name")?;
        let source = fields.map.get("schema").and_then(|schema| schema.get("openAPIV3Schema"));
        let parse = |source| {
            let wrong = |source| DefinitionError::Schema { version: name.clone(), source };
            Schema::parse(source).map(Arc::new).map_err(wrong)
        };
        let schema = source.filter(|source| !source.is_null()).map(parse).transpose()?;
        let subresources = fields.below("subresources")?;
        let scale = match subresources.is_set("scale") {
            false => None,
            true => {
                let scale = subresources.below("scale")?;
                let selector = scale.text("labelSelectorPath")?;
                Some(ScalePaths {
                    spec_replicas: scale.text("specReplicasPath")?,
                    status_replicas: scale.text("statusReplicasPath")?,
                    label_selector: Some(selector).filter(|path| !path.is_empty()),
                })
            }
        };
        let columns = fields.objects("additionalPrinterColumns")?;
        let selectable = fields.objects("selectableFields")?;
        Ok(Self {
            served: fields.flag("served")?,
            storage: fields.flag("storage")?,
            deprecated: fields.flag("deprecated")?,
            deprecation_warning: match fields.is_set("deprecationWarning") {
                true => Some(fields.text("deprecationWarning")?),
                false => None,
            },
            schema,
            has_status: subresources.is_set("status"),
            scale,
            columns: columns.iter().map(PrinterColumn::parse).collect::<Result<_, _>>()?,
            selectable_fields: selectable
                .iter()
                .map(|field| field.text("jsonPath"))
                .collect::<Result<_, _>>()?,
            name,
        })
    }
}

impl PrinterColumn {
    fn parse(fields: &Fields<'_>) -> Result<Self, DefinitionError> {
        Ok(Self {
            name: fields.text("name")?,
            kind: fields.text("type")?,
            format: fields.text("format")?,
            description: fields.text("description")?,
            priority: fields.map.get("priority").and_then(Value::as_i64).unwrap_or_default(),
            json_path: fields.text("jsonPath")?,
        })
    }
}

/// Fills in what upstream fills in: the singular and list kind, conversion `None`, and the storage
/// version among the stored ones.
pub fn default(object: &mut Value) {
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else { return };
    if let Some(names) = spec.get_mut("names").and_then(Value::as_object_mut) {
        let is_empty = |value: Option<&Value>| value.is_none_or(|value| value == "");
        let kind = names.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
        if is_empty(names.get("singular")) {
            names.insert("singular".to_owned(), Value::from(kind.to_lowercase()));
        }
        if is_empty(names.get("listKind")) && !kind.is_empty() {
            names.insert("listKind".to_owned(), Value::from(format!("{kind}List")));
        }
    }
    if spec.get("conversion").is_none_or(Value::is_null) {
        spec.insert("conversion".to_owned(), json!({"strategy": "None"}));
    }
}

/// Adds the storage version to `status.storedVersions`, where it is not among them.
pub fn remember_storage_version(object: &mut Value) {
    let versions = object.pointer("/spec/versions").and_then(Value::as_array);
    let storage = versions.into_iter().flatten().find(|version| version["storage"] == true);
    let Some(name) = storage.and_then(|version| version.get("name")).cloned() else { return };
    let Some(object) = object.as_object_mut() else { return };
    let status = object.entry("status").or_insert_with(|| json!({}));
    if !status.is_object() {
        *status = json!({});
    }
    match status.get_mut("storedVersions") {
        Some(Value::Array(stored)) if stored.contains(&name) => {}
        Some(Value::Array(stored)) => stored.push(name),
        _ => status["storedVersions"] = json!([name]),
    }
}

/// The fields of one object of the definition, and where it stands.
struct Fields<'a> {
    map: &'a Map<String, Value>,
    path: String,
}

static NOTHING: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);

impl<'a> Fields<'a> {
    fn of(object: &'a Value, name: &str) -> Result<Self, DefinitionError> {
        match object.get(name) {
            Some(Value::Object(map)) => Ok(Self { map, path: name.to_owned() }),
            _ => Err(DefinitionError::Field(name.to_owned(), "an object")),
        }
    }

    fn place(&self, name: &str) -> String {
        format!("{}.{name}", self.path)
    }

    fn is_set(&self, name: &str) -> bool {
        self.map.get(name).is_some_and(|value| !value.is_null())
    }

    /// An absent object reads as an empty one.
    fn below(&self, name: &str) -> Result<Fields<'a>, DefinitionError> {
        let path = self.place(name);
        match self.map.get(name) {
            None | Some(Value::Null) => Ok(Fields { map: &NOTHING, path }),
            Some(Value::Object(map)) => Ok(Fields { map, path }),
            Some(_) => Err(DefinitionError::Field(path, "an object")),
        }
    }

    fn text(&self, name: &str) -> Result<String, DefinitionError> {
        match self.map.get(name) {
            None | Some(Value::Null) => Ok(String::new()),
            Some(Value::String(text)) => Ok(text.clone()),
            Some(_) => Err(DefinitionError::Field(self.place(name), "a string")),
        }
    }

    fn flag(&self, name: &str) -> Result<bool, DefinitionError> {
        match self.map.get(name) {
            None | Some(Value::Null) => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(_) => Err(DefinitionError::Field(self.place(name), "a boolean")),
        }
    }

    fn list(&self, name: &str) -> Result<&'a [Value], DefinitionError> {
        match self.map.get(name) {
            None | Some(Value::Null) => Ok(&[]),
            Some(Value::Array(items)) => Ok(items),
            Some(_) => Err(DefinitionError::Field(self.place(name), "a list")),
        }
    }

    fn texts(&self, name: &str) -> Result<Vec<String>, DefinitionError> {
        let texts = self.list(name)?.iter().map(|item| item.as_str().map(str::to_owned));
        let wrong = || DefinitionError::Field(self.place(name), "a list of strings");
        texts.collect::<Option<_>>().ok_or_else(wrong)
    }

    fn objects(&self, name: &str) -> Result<Vec<Fields<'a>>, DefinitionError> {
        let each = self.list(name)?.iter().enumerate();
        each.map(|(index, item)| match item {
            Value::Object(map) => {
                Ok(Fields { map, path: format!("{}[{index}]", self.place(name)) })
            }
            _ => Err(DefinitionError::Field(self.place(name), "a list of objects")),
        })
        .collect()
    }
}
