//! CustomResourceDefinitions: parsing, defaults, and the checks of apiextensions-apiserver
//! (`pkg/apis/apiextensions/{v1/defaults,validation/validation}.go`).
//!
//! Enter at [`CustomResourceDefinition::parse`], after [`prune`](fn@prune), [`default`] and
//! [`check`]. Conversion by webhook is rejected, because this crate sends no requests.

mod check;
mod column;
mod format;
mod shape;
mod surface;
mod update;

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::parse::SchemaError;
use crate::schema::Schema;

pub use check::{ApprovalCondition, approval_condition, check};
pub use format::warnings;
pub use shape::prune;
pub use update::check_update;

/// Maximum number of versions in one definition.
pub const MAX_VERSIONS: usize = 32;

/// Maximum number of selectable fields of one version, as upstream.
pub const MAX_SELECTABLE_FIELDS: usize = 8;

/// Finalizer of a definition until its objects are deleted.
pub const CLEANUP_FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Reason why a value is not a valid definition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DefinitionError {
    /// A field is absent or has another type.
    #[error("reading the definition: {0} must be {1}")]
    Field(String, &'static str),
    /// The schema of a version is invalid.
    #[error("reading the definition: version {version}: {source}")]
    Schema {
        /// Name of the version.
        version: String,
        /// Reason why the schema is invalid.
        source: SchemaError,
    },
}

/// Scope of a kind's objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Each object belongs to a namespace.
    Namespaced,
    /// The objects are cluster-scoped.
    Cluster,
}

/// Names of a kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names {
    /// Plural name, as in URLs.
    pub plural: String,
    /// Singular name, accepted by kubectl.
    pub singular: String,
    /// Kind, as in `kind` of an object.
    pub kind: String,
    /// Kind of a list of these objects.
    pub list_kind: String,
    /// Abbreviations that kubectl accepts.
    pub short_names: Vec<String>,
    /// Categories for kubectl that the kind belongs to, such as `all`.
    pub categories: Vec<String>,
}

/// Column of the table that kubectl prints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrinterColumn {
    /// Heading of the column.
    pub name: String,
    /// Type of the column: `integer`, `number`, `string`, `boolean` or `date`.
    pub kind: String,
    /// Format of the type, such as `int32` or `date-time`; empty for none.
    pub format: String,
    /// Description of the column; empty for none.
    pub description: String,
    /// Priority; a column above 0 is shown in wide tables only.
    pub priority: i64,
    /// JSONPath of the cell's value.
    pub json_path: String,
}

/// Dotted paths of the values that the scale subresource uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScalePaths {
    /// Path of the desired replicas, below `.spec`.
    pub spec_replicas: String,
    /// Path of the current replicas, below `.status`.
    pub status_replicas: String,
    /// Path of the label selector, below `.spec` or `.status`; `None` for none.
    pub label_selector: Option<String>,
}

/// Version of a kind.
#[derive(Debug, Clone)]
pub struct Version {
    /// Name of the version, such as `v1alpha1`.
    pub name: String,
    /// True if the API serves this version.
    pub served: bool,
    /// True if objects are stored in this version.
    pub storage: bool,
    /// True if responses carry a deprecation warning.
    pub deprecated: bool,
    /// Deprecation warning; `None` for the default text.
    pub deprecation_warning: Option<String>,
    /// Schema of the objects; `None` if the version has none.
    pub schema: Option<Arc<Schema>>,
    /// True if the version has a status subresource.
    pub has_status: bool,
    /// Paths for the scale subresource; `None` without that subresource.
    pub scale: Option<ScalePaths>,
    /// Table columns after the name; empty for the default columns.
    pub columns: Vec<PrinterColumn>,
    /// JSONPaths of the fields that field selectors may use.
    pub selectable_fields: Vec<String>,
}

/// Parsed and valid definition.
#[derive(Debug, Clone)]
pub struct CustomResourceDefinition {
    /// Value of `metadata.name`: the plural, a dot, the group.
    pub name: String,
    /// API group of the kind.
    pub group: String,
    /// Scope of the kind's objects.
    pub scope: Scope,
    /// Names of the kind.
    pub names: Names,
    /// Versions in the order of the definition.
    pub versions: Vec<Version>,
    /// Versions in which stored objects may exist.
    pub stored_versions: Vec<String>,
}

impl CustomResourceDefinition {
    /// Parses a definition after [`default`]. Returns an error for a definition that [`check`]
    /// would reject, or a field of the wrong type.
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

    /// Returns the version in which objects are stored.
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

/// Sets upstream's defaults: singular name, list kind, conversion `None`, and the storage version
/// in `status.storedVersions`.
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

/// Adds the storage version to `status.storedVersions`, if it is missing there.
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

/// Fields of one object in the definition, and the object's path.
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

    /// Returns the fields of the object `name`; no fields if the object is absent.
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
