//! Parser for the metadata on which garbage collection depends.

use jiff::Timestamp;
use serde::Deserialize;

use super::super::{FOREGROUND, ORPHAN};

/// Fields of an object's metadata that the collector reads.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Head {
    pub uid: String,
    #[serde(deserialize_with = "nullable")]
    pub owner_references: Vec<Owner>,
    #[serde(deserialize_with = "nullable")]
    pub finalizers: Vec<String>,
    pub deletion_timestamp: Option<String>,
    pub creation_timestamp: Option<String>,
    #[serde(deserialize_with = "nullable")]
    pub managed_fields: Vec<ManagedFieldsEntry>,
}

/// Fields of a `managedFields` entry that the collector reads: the time of the last write.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct ManagedFieldsEntry {
    pub time: Option<String>,
}

/// Fields of an owner reference that the collector reads.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Owner {
    pub api_version: String,
    pub kind: String,
    pub name: String,
    pub uid: String,
    pub block_owner_deletion: Option<bool>,
}

#[derive(Deserialize)]
struct Object {
    #[serde(default)]
    metadata: Head,
}

impl Head {
    /// Parses the metadata of a stored object; `None` if `bytes` are not a JSON object.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice::<Object>(bytes).ok().map(|object| object.metadata)
    }

    /// Returns the newest of the creation time and the times in `managedFields`, if any.
    pub fn written(&self) -> Option<Timestamp> {
        let managed = self.managed_fields.iter().map(|one| &one.time);
        let times = managed.chain([&self.creation_timestamp]).flatten();
        times.filter_map(|time| time.parse().ok()).max()
    }

    /// Returns true if the object has a `deletionTimestamp`.
    pub fn is_deleting(&self) -> bool {
        self.deletion_timestamp.is_some()
    }

    /// Returns true if the object is in deletion and waits until its dependents are deleted.
    pub fn waits_for_dependents(&self) -> bool {
        self.is_deleting() && self.has(FOREGROUND)
    }

    /// Returns true if the object is in deletion and waits until its dependents are orphaned.
    pub fn orphans_dependents(&self) -> bool {
        self.is_deleting() && self.has(ORPHAN)
    }

    /// Returns true if the object has the finalizer `finalizer`.
    pub fn has(&self, finalizer: &str) -> bool {
        self.finalizers.iter().any(|one| one == finalizer)
    }

    /// Returns true if the object blocks the foreground deletion of the owner with the uid `owner`.
    pub fn blocks(&self, owner: &str) -> bool {
        let mut owners = self.owner_references.iter();
        owners.any(|one| one.uid == owner && one.block_owner_deletion == Some(true))
    }
}

fn nullable<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
