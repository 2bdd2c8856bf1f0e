//! Definitions of kinds: all facts that the engine needs about a kind. Compiled-in kinds and kinds
//! added at run time use the same type.
//!
//! One [`ResourceDefinition`] is a resource as **one version** serves it. The versions of a
//! resource share its objects, which are stored in one of the versions. Conversion between versions
//! changes only `apiVersion`, except for the two Event kinds (see [`Conversion`]).

mod column;
pub(crate) mod crd;
pub(crate) mod json_path;
mod merging;
mod registry;
mod scale;
mod stored_form;
mod unique;
mod version;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

pub use column::{Cell, Column, ColumnType};
pub use json_path::JsonPath;
pub use merging::Merging;
pub use registry::{Duplicate, Registry};
pub use scale::Scale;
use schema::{FieldError, Schema};
pub use stored_form::StoredForm;
pub use unique::{UniqueValue, UniqueValues};
pub(crate) use version::preference;

/// Function that returns all mistakes in an object. The second argument is the stored object on an
/// update, `None` on a create.
pub type Validate = Arc<dyn Fn(&Value, Option<&Value>) -> Vec<FieldError> + Send + Sync>;

/// Function that returns warnings about an accepted object. The second argument is the stored
/// object on an update, `None` on a create.
pub type Advise = Arc<dyn Fn(&Value, Option<&Value>) -> Vec<String> + Send + Sync>;

/// Function that converts a client's object to the stored form, before validation.
pub type Prepare = Arc<dyn Fn(&mut Value) + Send + Sync>;

/// Required syntax of `metadata.name`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameRule {
    /// RFC 1123 subdomain, at most 253 bytes: labels joined by dots.
    Subdomain,
    /// RFC 1123 label, at most 63 bytes: for names that become a DNS label themselves.
    Label,
    /// Path segment: neither `.` nor `..`, no `/`, no `%` (names of RBAC kinds, `system:node`).
    PathSegment,
}

/// Conversion between the fields of a kind and the fields in the store; the engine itself sets
/// `apiVersion`.
#[derive(Clone, Copy)]
pub struct Conversion {
    /// Converts the stored fields to this kind's fields.
    pub served: fn(&mut Value),
    /// Converts this kind's fields to the stored fields.
    pub stored: fn(&mut Value),
}

/// Name of a kind with its API group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupKind<'a> {
    /// API group; empty for core.
    pub group: &'a str,
    /// Kind in CamelCase, such as `Hardware`.
    pub kind: &'a str,
}

/// Identity of the stored CustomResourceDefinition from which a kind was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// Store revision of the definition.
    pub revision: u64,
    /// SHA-256 of the definition's `spec` and accepted names, not of labels and conditions.
    pub spec: [u8; 32],
}

/// Definition of one version of a resource. The engine's code depends on no specific kind.
#[derive(Clone)]
pub struct ResourceDefinition {
    /// API group; empty for core.
    pub group: String,
    /// API version of this definition, such as `v1alpha1`.
    pub version: String,
    /// API version in which objects are stored.
    pub storage_version: String,
    /// True if clients may use this version; a version that is not served may still be the storage
    /// version.
    pub served: bool,
    /// Warning to clients that use a deprecated version; `None` if not deprecated.
    pub deprecated: Option<String>,
    /// Kind in CamelCase, singular, such as `Hardware`.
    pub kind: String,
    /// Kind of a list, usually [`Self::kind`] followed by `List`.
    pub list_kind: String,
    /// Plural in lower case, used in paths.
    pub plural: String,
    /// Singular in lower case, accepted by kubectl.
    pub singular: String,
    /// Short names that kubectl accepts, such as `hw`.
    pub short_names: Vec<String>,
    /// Categories: names such as `all` under which kubectl lists several kinds.
    pub categories: Vec<String>,
    /// True if objects live in a namespace; false for cluster scope.
    pub namespaced: bool,
    /// True if `status` is written only through `/status`.
    pub status_subresource: bool,
    /// Paths of the replica fields; `None` without a `/scale` subresource.
    pub scale: Option<Scale>,
    /// Definition from which the kind was made; `None` for a compiled-in kind.
    pub origin: Option<Origin>,
    /// True if `metadata.generation` counts changes of the desired state.
    pub tracks_generation: bool,
    /// True for Kubernetes' own kinds, which accept strategic merge patches and protobuf bodies;
    /// false for custom resources.
    pub native: bool,
    /// True if PUT may omit the resourceVersion (core kinds; never custom kinds).
    pub unconditional_update: bool,
    /// Required syntax of object names.
    pub name_rule: NameRule,
    /// Schema of this version's fields; `None` if objects may have any fields.
    pub schema: Option<Arc<Schema>>,
    /// Schema of the stored fields. `None` if objects may have any fields, and for Kubernetes' own
    /// kinds, whose stored fields are never removed.
    pub stored_form: Option<StoredForm>,
    /// Merge rules of the fields, computed on first use.
    pub merging: Merging,
    /// Columns of `kubectl get`, in order, the name column included.
    pub columns: Vec<Column>,
    /// Dotted paths that field selectors may contain, in addition to `metadata.name` and
    /// `metadata.namespace`.
    pub selectable_fields: Vec<String>,
    /// Resource under which objects are stored, such as `/events`; `None` for this resource.
    pub stored_as: Option<String>,
    /// Conversion from and to the stored fields; `None` if served and stored fields are the same.
    pub conversion: Option<Conversion>,
    /// Lifetime of an object after its last write, for records; `None` means unlimited.
    pub time_to_live: Option<Duration>,
    /// Maximum objects per namespace, for records such as events, never for desired state. A
    /// record's name is its subject, a dot and a suffix. Above the limit, the subject with the most
    /// records loses the oldest record.
    pub keep_newest: Option<usize>,
    /// True if the response to a deletion is the object, not a Status.
    pub returns_deleted: bool,
    /// True if the kind is being deleted: its objects can be read and deleted, not created.
    pub terminating: bool,
    /// True for the kind CustomResourceDefinition, whose objects define kinds.
    pub defines_kinds: bool,
    /// True for the kind Namespace.
    pub is_namespace: bool,
    /// Names of objects that exist from the first start and cannot be deleted.
    pub permanent: Vec<String>,
    /// Function that returns values that no two objects may share; `None` if there are none.
    pub unique: Option<UniqueValues>,
    /// Function that converts a client's object to the stored form; `None` if not needed.
    pub prepare: Option<Prepare>,
    /// Validation beyond the schema; `None` if the schema has all rules.
    pub validate: Option<Validate>,
    /// Function that warns about parts of an accepted object without effect; `None` if not needed.
    pub advise: Option<Advise>,
}

impl ResourceDefinition {
    /// Returns a kind with the defaults of a minimal CustomResourceDefinition: namespaced, with
    /// generations, any fields, and `version` as the storage version.
    pub fn new(group: &str, version: &str, kind: &str, plural: &str) -> Self {
        Self {
            group: group.to_owned(),
            version: version.to_owned(),
            storage_version: version.to_owned(),
            served: true,
            deprecated: None,
            kind: kind.to_owned(),
            list_kind: format!("{kind}List"),
            plural: plural.to_owned(),
            singular: kind.to_lowercase(),
            short_names: Vec::new(),
            categories: Vec::new(),
            namespaced: true,
            status_subresource: false,
            scale: None,
            origin: None,
            tracks_generation: true,
            native: false,
            unconditional_update: false,
            name_rule: NameRule::Subdomain,
            schema: None,
            stored_form: None,
            merging: Merging::default(),
            columns: vec![Column::name(), Column::age()],
            selectable_fields: Vec::new(),
            stored_as: None,
            conversion: None,
            time_to_live: None,
            keep_newest: None,
            returns_deleted: false,
            terminating: false,
            defines_kinds: false,
            is_namespace: false,
            permanent: Vec::new(),
            unique: None,
            prepare: None,
            validate: None,
            advise: None,
        }
    }

    /// Returns the resource's name in the store: `tinkerbell.org/hardware`, `/secrets`. In
    /// [`crate::Engine`]'s calls, this name means the storage version.
    pub fn id(&self) -> String {
        match &self.stored_as {
            Some(id) => id.clone(),
            None => format!("{}/{}", self.group, self.plural),
        }
    }

    /// Returns the name of this version of the resource in [`crate::Engine`]'s calls:
    /// `tinkerbell.org/hardware@v1alpha1`.
    pub fn address(&self) -> String {
        format!("{}/{}@{}", self.group, self.plural, self.version)
    }

    /// Returns true if this definition is the storage version and no other kind stores the objects.
    pub fn is_storage(&self) -> bool {
        self.stored_as.is_none() && self.version == self.storage_version
    }

    /// Returns the resource with its group, for messages: `hardware.tinkerbell.org`, `secrets`.
    pub fn qualified(&self) -> String {
        if self.group.is_empty() {
            self.plural.clone()
        } else {
            format!("{}.{}", self.plural, self.group)
        }
    }

    /// Returns the kind and its API group, for messages.
    pub fn group_kind(&self) -> GroupKind<'_> {
        GroupKind { group: &self.group, kind: &self.kind }
    }

    /// Returns the `apiVersion` of objects: `tinkerbell.org/v1alpha1`, or `v1` for core.
    pub fn api_version(&self) -> String {
        api_version(&self.group, &self.version)
    }

    /// Converts a stored object to the form that this version serves. An object that an older
    /// schema accepted also needs [`Self::complete_stored`].
    pub fn to_served(&self, object: &mut Value) {
        if let Some(conversion) = &self.conversion {
            (conversion.served)(object);
        }
        if object.is_object() && object["apiVersion"] != *self.api_version() {
            object["apiVersion"] = Value::from(self.api_version());
        }
    }

    /// Returns true if an object last written at `revision` has the present stored form.
    pub(crate) fn is_current(&self, revision: u64) -> bool {
        self.stored_form.as_ref().is_none_or(|form| form.is_current(revision))
    }

    /// Drops fields that the present stored schema does not have, and adds its new defaults.
    pub(crate) fn complete_stored(&self, object: &mut Value) {
        if let Some(form) = &self.stored_form {
            form.complete(object);
        }
    }

    /// Returns the stored form; `None` if this version has the same schema.
    pub(crate) fn other_form(&self) -> Option<&StoredForm> {
        let same = |form: &&StoredForm| {
            self.schema.as_ref().is_some_and(|schema| Arc::ptr_eq(schema, form.schema()))
        };
        self.stored_form.as_ref().filter(|form| !same(form))
    }

    /// Converts an object of this version to its stored form.
    pub fn to_stored(&self, object: &mut Value) {
        let stored = self.stored_as.as_deref().and_then(|id| id.split_once('/'));
        let group = stored.map_or(self.group.as_str(), |(group, _)| group);
        if object.is_object() {
            object["apiVersion"] = Value::from(api_version(group, &self.storage_version));
        }
        if let Some(conversion) = &self.conversion {
            (conversion.stored)(object);
        }
    }
}

impl fmt::Debug for ResourceDefinition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ResourceDefinition({} {})", self.api_version(), self.kind)
    }
}

fn api_version(group: &str, version: &str) -> String {
    match group {
        "" => version.to_owned(),
        group => format!("{group}/{version}"),
    }
}
