//! What every object carries, as Kubernetes names it (apimachinery `meta/v1`).

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Names one kind of object at one version: what a path of the API is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Resource {
    /// API group; empty for the core group.
    pub group: &'static str,
    /// Version inside the group.
    pub version: &'static str,
    /// Kind, in upper camel case.
    pub kind: &'static str,
    /// Plural, as in paths.
    pub plural: &'static str,
}

impl Resource {
    /// `group/version`, or the bare version for the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }
}

/// An object's name inside its namespace.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ObjectKey {
    /// Namespace; empty for cluster-scoped kinds.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl ObjectKey {
    /// A key from its two parts.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl std::fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// The metadata of an object; fields the box has no use for are left to the stored JSON.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectMeta {
    /// Name, unique among its kind in its namespace.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Namespace.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Identity across deletion and re-creation.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// Store revision of the last write, as decimal text.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resource_version: String,
    /// Counts changes of the spec.
    #[serde(skip_serializing_if = "is_zero")]
    pub generation: i64,
    /// When it was created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub creation_timestamp: Option<Timestamp>,
    /// Set when somebody asked for deletion and finalizers hold it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_timestamp: Option<Timestamp>,
    /// Labels.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// What must be undone before the object may go.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub finalizers: Vec<String>,
    /// Whose object it is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub owner_references: Vec<OwnerReference>,
}

fn is_zero(number: &i64) -> bool {
    *number == 0
}

/// Names an owner of an object.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OwnerReference {
    /// `group/version` of the owner.
    pub api_version: String,
    /// Kind of the owner.
    pub kind: String,
    /// Name of the owner, in the same namespace.
    pub name: String,
    /// Uid of the owner.
    pub uid: String,
    /// The one owner that manages the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controller: Option<bool>,
    /// Deleting the owner in the foreground waits for this object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_owner_deletion: Option<bool>,
}

/// An object with a spec and a status.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Object<Spec, Status>
where
    Spec: Default,
    Status: Default,
{
    /// `group/version`.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Metadata.
    pub metadata: ObjectMeta,
    /// What is wanted.
    pub spec: Spec,
    /// What is.
    pub status: Status,
}

impl<Spec: Default, Status: Default> Object<Spec, Status> {
    /// Namespace and name.
    pub fn key(&self) -> ObjectKey {
        ObjectKey::new(&self.metadata.namespace, &self.metadata.name)
    }

    /// A reference that makes this object the controlling owner of another.
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
