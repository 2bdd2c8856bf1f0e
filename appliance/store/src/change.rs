//! A stored value, and the change that one revision made.

use std::sync::Arc;

use crate::Key;

/// A value and the revision of the write that stored it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stored {
    /// Revision of the last write.
    pub revision: u64,
    /// The bytes as they were written; the store never looks inside.
    pub value: Arc<[u8]>,
}

/// The change of one revision. Every revision from 1 on changed exactly one object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Change {
    /// The revision of this change.
    pub revision: u64,
    /// The object it changed.
    pub key: Key,
    /// Kind of the change.
    pub kind: ChangeKind,
}

/// Kind of a change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ChangeKind {
    /// The object was created (`previous` is `None`) or replaced.
    Put {
        /// The value from this revision on.
        value: Arc<[u8]>,
        /// State that the change replaced.
        previous: Option<Stored>,
    },
    /// The object was deleted.
    Delete {
        /// Last state of the object.
        previous: Stored,
    },
}

impl Change {
    /// The object after this change; `None` once deleted.
    pub fn current(&self) -> Option<Stored> {
        match &self.kind {
            ChangeKind::Put { value, .. } => {
                Some(Stored { revision: self.revision, value: value.clone() })
            }
            ChangeKind::Delete { .. } => None,
        }
    }

    /// The object before this change; `None` when this created it.
    pub fn previous(&self) -> Option<&Stored> {
        match &self.kind {
            ChangeKind::Put { previous, .. } => previous.as_ref(),
            ChangeKind::Delete { previous } => Some(previous),
        }
    }

    /// Bytes of values and names this change keeps in memory.
    pub(crate) fn weight(&self) -> usize {
        let value = match &self.kind {
            ChangeKind::Put { value, .. } => value.len(),
            ChangeKind::Delete { .. } => 0,
        };
        let previous = self.previous().map_or(0, |previous| previous.value.len());
        value + previous + self.key.resource.len() + self.key.namespace.len() + self.key.name.len()
    }
}
