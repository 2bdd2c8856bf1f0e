//! What the engine knows about a kind: plain values, the same for a compiled-in kind and for one
//! that arrives at run time.
//!
//! One [`ResourceDefinition`] is a resource as **one version** serves it; the versions of a
//! resource share its objects, which are stored in one of them. Converting between versions changes
//! nothing but `apiVersion`, except for the two Event kinds (see [`Conversion`]).

mod column;
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
pub use merging::Merging;
pub use registry::{Duplicate, Registry};
pub use scale::Scale;
use schema::{FieldError, Schema};
pub use stored_form::StoredForm;
pub use unique::{UniqueValue, UniqueValues};
pub(crate) use version::preference;

/// Checks a whole object; `old` is the stored one on an update. Gives every mistake at once.
pub type Validate = Arc<dyn Fn(&Value, Option<&Value>) -> Vec<FieldError> + Send + Sync>;

/// Warnings for the writer of an object that is accepted; `old` is the stored one on an update.
pub type Advise = Arc<dyn Fn(&Value, Option<&Value>) -> Vec<String> + Send + Sync>;

/// Brings an incoming object to its stored form, before validation.
pub type Prepare = Arc<dyn Fn(&mut Value) + Send + Sync>;

/// Which syntax `metadata.name` must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameRule {
    /// RFC 1123 subdomain, at most 253 bytes: labels joined by dots.
    Subdomain,
    /// RFC 1123 label, at most 63 bytes: names that become a DNS label themselves.
    Label,
    /// A path segment: neither `.` nor `..`, no `/`, no `%` (names of RBAC kinds, `system:node`).
    PathSegment,
}

/// How a kind's fields differ from those of its stored form, beside `apiVersion` and `kind`.
#[derive(Clone, Copy)]
pub struct Conversion {
    /// From the stored fields to this kind's.
    pub served: fn(&mut Value),
    /// From this kind's fields to the stored ones.
    pub stored: fn(&mut Value),
}

/// The stored CustomResourceDefinition that a kind was made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// Its revision.
    pub revision: u64,
    /// A digest of all in it that matters to the kind: writes of labels and conditions do not.
    pub spec: [u8; 32],
}

/// A kind as the engine serves it. Nothing else in this crate knows a kind by name.
#[derive(Clone)]
pub struct ResourceDefinition {
    /// API group; empty for core.
    pub group: String,
    /// The version this definition is of.
    pub version: String,
    /// The version objects are stored in.
    pub storage_version: String,
    /// Whether clients may use this version; one that is not served may still be the stored one.
    pub served: bool,
    /// What a client of a deprecated version is warned of.
    pub deprecated: Option<String>,
    /// CamelCase singular.
    pub kind: String,
    /// The kind of a list, [`Self::kind`] and `List` nearly always.
    pub list_kind: String,
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
    /// The replicas of objects that have a `/scale` subresource.
    pub scale: Option<Scale>,
    /// Of what the kind was made; `None` for one that is compiled in.
    pub origin: Option<Origin>,
    /// Whether `metadata.generation` counts changes of what is asked for.
    pub tracks_generation: bool,
    /// Whether the kind is Kubernetes' own and not a custom resource: then strategic merge patches
    /// and protobuf bodies are taken.
    pub native: bool,
    /// Whether PUT may leave out the resourceVersion (core kinds; never custom kinds).
    pub unconditional_update: bool,
    /// Syntax of names.
    pub name_rule: NameRule,
    /// What its fields are, where that is known.
    pub schema: Option<Arc<Schema>>,
    /// The fields of stored objects; `None` where they are not known, and for Kubernetes' own
    /// kinds, which never lose a field.
    pub stored_form: Option<StoredForm>,
    /// How they merge, once it was asked.
    pub merging: Merging,
    /// Columns of `kubectl get`, in order, the name's included.
    pub columns: Vec<Column>,
    /// Dotted paths a field selector may name, beside `metadata.name` and `metadata.namespace`.
    pub selectable_fields: Vec<String>,
    /// The resource whose stored objects these are, where that is another: `/events`.
    pub stored_as: Option<String>,
    /// How fields differ from those of the stored objects.
    pub conversion: Option<Conversion>,
    /// How long objects live after they were last written, for records; `None` is for ever.
    pub time_to_live: Option<Duration>,
    /// At most this many objects per namespace: of the subject with most records the oldest gives
    /// way. For records, not for intent; a record is named after its subject, a dot and a suffix.
    pub keep_newest: Option<usize>,
    /// Whether a deletion is answered with the object and not with a Status.
    pub returns_deleted: bool,
    /// Whether the kind is going: its objects can be read and deleted, not created.
    pub terminating: bool,
    /// Whether objects of this kind define kinds.
    pub defines_kinds: bool,
    /// Whether objects of this kind are the namespaces others live in.
    pub is_namespace: bool,
    /// Names that exist from the first start and cannot be deleted.
    pub permanent: Vec<String>,
    /// Values that no two objects may have.
    pub unique: Option<UniqueValues>,
    /// Brings incoming objects to stored form.
    pub prepare: Option<Prepare>,
    /// Checks objects.
    pub validate: Option<Validate>,
    /// Warns of what an accepted object does not do.
    pub advise: Option<Advise>,
}

impl ResourceDefinition {
    /// A kind as a CustomResourceDefinition without anything optional makes it: namespaced, with
    /// generations, any fields, and the stored version.
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

    /// The resource's key in the store, and in [`crate::Engine`]'s calls where any version does:
    /// `tinkerbell.org/hardware`, `/secrets`.
    pub fn id(&self) -> String {
        match &self.stored_as {
            Some(id) => id.clone(),
            None => format!("{}/{}", self.group, self.plural),
        }
    }

    /// What names this version of the resource in [`crate::Engine`]'s calls:
    /// `tinkerbell.org/hardware@v1alpha1`.
    pub fn address(&self) -> String {
        format!("{}/{}@{}", self.group, self.plural, self.version)
    }

    /// Whether this is the definition by which objects are stored.
    pub fn is_storage(&self) -> bool {
        self.stored_as.is_none() && self.version == self.storage_version
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
        api_version(&self.group, &self.version)
    }

    /// Brings a stored object to the form in which this version serves it; see
    /// [`Self::complete_stored`] for one that an older schema let in.
    pub fn to_served(&self, object: &mut Value) {
        if let Some(conversion) = &self.conversion {
            (conversion.served)(object);
        }
        if object.is_object() && object["apiVersion"] != *self.api_version() {
            object["apiVersion"] = Value::from(self.api_version());
        }
    }

    /// True if an object that was written at `revision` has the form in which it is stored today.
    pub(crate) fn is_current(&self, revision: u64) -> bool {
        self.stored_form.as_ref().is_none_or(|form| form.is_current(revision))
    }

    /// Brings an object to the form in which it is stored today, whatever version it is read and
    /// written in.
    pub(crate) fn complete_stored(&self, object: &mut Value) {
        if let Some(form) = &self.stored_form {
            form.complete(object);
        }
    }

    /// The form in which objects are stored, where this version has other fields.
    pub(crate) fn other_form(&self) -> Option<&StoredForm> {
        let same = |form: &&StoredForm| {
            self.schema.as_ref().is_some_and(|schema| Arc::ptr_eq(schema, form.schema()))
        };
        self.stored_form.as_ref().filter(|form| !same(form))
    }

    /// Brings an object of this version to its stored form.
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
