//! Fields of every object, with the names of Kubernetes (apimachinery `meta/v1`).

mod condition;
mod label_selector;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

pub use condition::Condition;
pub use label_selector::{LabelRequirement, LabelSelector, SelectorError};

/// Kind of object in one API version, with the parts of its API path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Resource {
    /// API group; empty for the core group.
    pub group: &'static str,
    /// Version inside the group.
    pub version: &'static str,
    /// Kind, in upper camel case.
    pub kind: &'static str,
    /// Plural name, as in API paths.
    pub plural: &'static str,
}

impl Resource {
    /// Returns `group/version`, or only the version for the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }
}

/// Name and namespace of an object.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ObjectKey {
    /// Namespace; empty for cluster-scoped kinds.
    pub namespace: String,
    /// Name within the namespace.
    pub name: String,
}

impl ObjectKey {
    /// Creates a key from namespace and name.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl std::fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// Metadata of an object. Fields that the box does not use remain in the stored JSON.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectMeta {
    /// Name, unique for the kind in its namespace.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Namespace; empty for cluster-scoped kinds.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Unique ID; an object that is deleted and created again gets a new ID.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// Store revision of the last write, as decimal text.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resource_version: String,
    /// Version number of the spec. Each change of the spec increments the number.
    #[serde(skip_serializing_if = "is_zero")]
    pub generation: i64,
    /// Time at which the object was created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub creation_timestamp: Option<Timestamp>,
    /// Time of the deletion request; set while finalizers delay the deletion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_timestamp: Option<Timestamp>,
    /// Labels, which selectors match.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations, which selectors do not match.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Finalizers: names of cleanup steps that must complete before the object is removed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub finalizers: Vec<String>,
    /// Owners of the object. Garbage collection deletes the object after its last owner.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub owner_references: Vec<OwnerReference>,
}

fn is_zero(number: &i64) -> bool {
    *number == 0
}

/// Reference to an owner of an object.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OwnerReference {
    /// API version of the owner as `group/version`.
    pub api_version: String,
    /// Kind of the owner.
    pub kind: String,
    /// Name of the owner, in the same namespace.
    pub name: String,
    /// UID of the owner.
    pub uid: String,
    /// True for the owner whose controller manages the object; at most one owner has true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controller: Option<bool>,
    /// True if foreground deletion of the owner waits for this object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_owner_deletion: Option<bool>,
}

/// API object with a spec and a status.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Object<Spec, Status>
where
    Spec: Default,
    Status: Default,
{
    /// API version as `group/version`.
    pub api_version: String,
    /// Kind in upper camel case.
    pub kind: String,
    /// Name, labels and other metadata.
    pub metadata: ObjectMeta,
    /// Desired state of the object.
    pub spec: Spec,
    /// Observed state of the object.
    pub status: Status,
}

impl<Spec: Default, Status: Default> Object<Spec, Status> {
    /// Returns namespace and name of the object.
    pub fn key(&self) -> ObjectKey {
        ObjectKey::new(&self.metadata.namespace, &self.metadata.name)
    }

    /// Returns the owner reference that makes this object the controlling owner of another object.
    pub fn controller_reference(&self, resource: Resource) -> OwnerReference {
        OwnerReference {
            api_version: resource.api_version(),
            kind: resource.kind.to_owned(),
            name: self.metadata.name.clone(),
            uid: self.metadata.uid.clone(),
            controller: Some(true),
            block_owner_deletion: Some(true),
        }
    }
}
