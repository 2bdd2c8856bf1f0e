//! Stored value, and the change of one revision.

use std::sync::Arc;

use crate::Key;

/// Value with the revision of the write that stored it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stored {
    /// Revision of the last write.
    pub revision: u64,
    /// Bytes of the object; the store never parses them.
    pub value: Arc<[u8]>,
}

/// Change of one revision. Every revision from 1 on changed exactly one object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Change {
    /// Revision of this change.
    pub revision: u64,
    /// Key of the changed object.
    pub key: Key,
    /// Kind of the change.
    pub kind: ChangeKind,
}

/// Kind of a change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ChangeKind {
    /// The object was created (`previous` is `None`) or replaced.
    Put {
        /// Value from this revision on.
        value: Arc<[u8]>,
        /// State that the change replaced; `None` if the object is new.
        previous: Option<Stored>,
    },
    /// The object was deleted.
    Delete {
        /// Last state of the object.
        previous: Stored,
    },
}

impl Change {
    /// Returns the object after this change; `None` after a deletion.
    pub fn current(&self) -> Option<Stored> {
        match &self.kind {
            ChangeKind::Put { value, .. } => {
                Some(Stored { revision: self.revision, value: value.clone() })
            }
            ChangeKind::Delete { .. } => None,
        }
    }

    /// Returns the object before this change; `None` if this change created it.
    pub fn previous(&self) -> Option<&Stored> {
        match &self.kind {
            ChangeKind::Put { previous, .. } => previous.as_ref(),
            ChangeKind::Delete { previous } => Some(previous),
        }
    }

    /// Returns the bytes of key, value and previous value, which the change keeps in memory.
    pub(crate) fn weight(&self) -> usize {
        let value = match &self.kind {
            ChangeKind::Put { value, .. } => value.len(),
            ChangeKind::Delete { .. } => 0,
        };
        let previous = self.previous().map_or(0, |previous| previous.value.len());
        value + previous + self.key.resource.len() + self.key.namespace.len() + self.key.name.len()
    }
}
