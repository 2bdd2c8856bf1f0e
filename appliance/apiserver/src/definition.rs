//! What the engine knows about a kind: plain values, the same for a compiled-in kind and for one
//! that arrives at run time.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use crate::field_error::FieldError;
use crate::json_path::JsonPath;

/// Checks a whole object; `old` is the stored one on an update. Gives every mistake at once.
pub type Validate = Arc<dyn Fn(&Value, Option<&Value>) -> Vec<FieldError> + Send + Sync>;

/// Brings an incoming object to its stored form, before validation.
pub type Prepare = Arc<dyn Fn(&mut Value) + Send + Sync>;

/// Which syntax `metadata.name` must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameRule {
    /// RFC 1123 subdomain, at most 253 bytes: labels joined by dots.
    Subdomain,
    /// RFC 1123 label, at most 63 bytes: names that become a DNS label themselves.
    Label,
}

/// How a Table prints a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnType {
    /// The printed form, whatever the JSON type.
    String,
    /// A JSON number without fraction.
    Integer,
    /// A JSON boolean.
    Boolean,
    /// An RFC 3339 time, shown as the time since.
    Date,
}

impl ColumnType {
    /// The word in `columnDefinitions[].type`.
    pub fn word(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Integer => "integer",
            Self::Boolean => "boolean",
            Self::Date => "date",
        }
    }
}

/// Where a cell's value comes from.
#[derive(Clone)]
pub enum Cell {
    /// The values a path finds.
    Path(JsonPath),
    /// The number of entries of the object or array a path finds.
    Count(JsonPath),
    /// Anything a path cannot say; given the object and the time now.
    With(fn(&Value, Timestamp) -> Value),
}

/// One column of `kubectl get`.
#[derive(Clone)]
pub struct Column {
    /// The heading, as the client shows it in upper case.
    pub name: String,
    /// The cell's type.
    pub kind: ColumnType,
    /// `name` marks the column with the object's name.
    pub format: String,
    /// One sentence for `explain`-like tools.
    pub description: String,
    /// 0 is always shown; more only with `-o wide`.
    pub priority: u32,
    /// Where the value comes from.
    pub cell: Cell,
}

/// A kind as the engine serves it. Nothing else in this crate knows a kind by name.
#[derive(Clone)]
pub struct ResourceDefinition {
    /// API group; empty for core.
    pub group: String,
    /// The served (and stored) version.
    pub version: String,
    /// CamelCase singular.
    pub kind: String,
    /// Lower-case plural, the word in paths.
    pub plural: String,
    /// Lower-case singular.
    pub singular: String,
    /// Abbreviations for people.
    pub short_names: Vec<String>,
    /// Groups of kinds that are listed together.
    pub categories: Vec<String>,
    /// Whether objects live in a namespace.
    pub namespaced: bool,
    /// Whether `status` is written only through `/status`.
    pub status_subresource: bool,
    /// Whether `metadata.generation` counts changes of what is asked for.
    pub tracks_generation: bool,
    /// Whether PUT may leave out the resourceVersion (core kinds; never custom kinds).
    pub unconditional_update: bool,
    /// Syntax of names.
    pub name_rule: NameRule,
    /// Columns of `kubectl get`, in order, the name's included.
    pub columns: Vec<Column>,
    /// Dotted paths a field selector may name, beside `metadata.name` and `metadata.namespace`.
    pub selectable_fields: Vec<String>,
    /// At most this many objects per namespace; the oldest give way. For records, not for intent.
    pub keep_newest: Option<usize>,
    /// Whether objects of this kind are the namespaces others live in.
    pub is_namespace: bool,
    /// Names that exist from the first start and cannot be deleted.
    pub permanent: Vec<String>,
    /// Brings incoming objects to stored form.
    pub prepare: Option<Prepare>,
    /// Checks objects.
    pub validate: Option<Validate>,
}

impl ResourceDefinition {
    /// The resource's key in the store and in [`crate::Engine`]'s calls:
    /// `tinkerbell.org/hardware`, `/secrets`.
    pub fn id(&self) -> String {
        format!("{}/{}", self.group, self.plural)
    }

    /// `hardware.tinkerbell.org`, `secrets`: how sentences name the resource.
    pub fn qualified(&self) -> String {
        if self.group.is_empty() {
            self.plural.clone()
        } else {
            format!("{}.{}", self.plural, self.group)
        }
    }

    /// `tinkerbell.org/v1alpha1`, `v1`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }
}

impl fmt::Debug for ResourceDefinition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ResourceDefinition({} {})", self.api_version(), self.kind)
    }
}

/// Two definitions claim the same resource or kind.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot register {0}: its plural or kind is already taken in that group")]
pub struct Duplicate(pub String);

/// The kinds that are served.
#[derive(Debug, Clone, Default)]
pub struct Registry {
    definitions: Vec<Arc<ResourceDefinition>>,
}

impl Registry {
    /// A registry of `definitions`, served in this order.
    ///
    /// # Errors
    /// When two of them share a group and a plural or kind.
    pub fn new(definitions: Vec<ResourceDefinition>) -> Result<Self, Duplicate> {
        let mut registry = Self::default();
        for definition in definitions {
            let taken = registry.definitions.iter().any(|other| {
                other.group == definition.group
                    && (other.plural == definition.plural || other.kind == definition.kind)
            });
            if taken {
                return Err(Duplicate(definition.qualified()));
            }
            registry.definitions.push(Arc::new(definition));
        }
        Ok(registry)
    }

    /// Every definition, in order of registration.
    pub fn all(&self) -> &[Arc<ResourceDefinition>] {
        &self.definitions
    }

    /// By store key, `tinkerbell.org/hardware`.
    pub fn by_id(&self, id: &str) -> Option<&Arc<ResourceDefinition>> {
        let (group, plural) = id.split_once('/')?;
        self.definitions.iter().find(|one| one.group == group && one.plural == plural)
    }

    /// By path segments.
    pub fn by_path(
        &self,
        group: &str,
        version: &str,
        plural: &str,
    ) -> Option<&Arc<ResourceDefinition>> {
        self.definitions
            .iter()
            .find(|one| one.group == group && one.version == version && one.plural == plural)
    }

    /// The kind whose objects are the namespaces.
    pub fn namespaces(&self) -> Option<&Arc<ResourceDefinition>> {
        self.definitions.iter().find(|one| one.is_namespace)
    }
}
