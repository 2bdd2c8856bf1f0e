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

/// What one revision did. Every revision from 1 on did exactly one thing to exactly one object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Change {
    /// The revision of this change.
    pub revision: u64,
    /// The object it changed.
    pub key: Key,
    /// What became of the object.
    pub kind: ChangeKind,
}

/// What became of an object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ChangeKind {
    /// It was created (`previous` is `None`) or replaced.
    Put {
        /// The value from this revision on.
        value: Arc<[u8]>,
        /// What it replaced.
        previous: Option<Stored>,
    },
    /// It was deleted.
    Delete {
        /// Its last state.
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
