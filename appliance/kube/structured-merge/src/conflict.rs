//! Errors of an apply, and its conflicts with other managers, with the messages of an API server
//! (apimachinery, `util/managedfields/internal/conflict.go`).

use std::fmt;

use crate::managers::{Entry, Operation};
use crate::set::Set;
use crate::typed::shortened;
use go_text::quoted;

/// Maximum number of conflicts in a message; the message only counts further conflicts.
const MAX_CONFLICTS: usize = 100;

/// Reason why an apply is rejected, or the ownership of a write cannot be determined.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// Other managers own fields that the apply would change.
    #[error("{0}")]
    Conflicts(Conflicts),
    /// The configuration is of another kind or version, or contains `managedFields`.
    #[error("{0}")]
    BadRequest(String),
    /// The configuration or the object does not match its schema.
    #[error("{0}")]
    Failed(String),
}

/// Field that another manager owns and that the apply would change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// Owner of the field: name, subresource and, for other writes than an apply, version.
    pub manager: String,
    /// Path of the field, such as `.spec.replicas`.
    pub field: String,
}

impl Conflict {
    /// Returns the message without the field, which the response has in another place.
    pub fn message(&self) -> String {
        format!("conflict with {}", self.manager)
    }
}

/// All fields that an apply may change only with force, by manager; never empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Conflicts(Vec<(String, Set)>);

impl Conflicts {
    /// Adds the fields of `owned`, which belong to `entry`.
    pub(crate) fn add(&mut self, entry: &Entry, owned: Set) {
        self.0.push((owner(entry), owned));
    }

    /// Returns the conflicts without the fields in `allowed`.
    pub(crate) fn without(&self, allowed: &Set) -> Self {
        let left = self.0.iter().map(|(owner, owned)| (owner.clone(), owned.difference(allowed)));
        Self(left.filter(|(_, owned)| !owned.is_empty()).collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn len(&self) -> usize {
        self.0.iter().map(|(_, owned)| owned.len()).sum()
    }

    /// Returns the first 100 conflicts, grouped by manager.
    pub fn listed(&self) -> Vec<Conflict> {
        let mut listed: Vec<Conflict> = Vec::new();
        for (manager, owned) in &self.0 {
            let paths = owned.first_paths(MAX_CONFLICTS - listed.len());
            listed.extend(paths.iter().map(|path| Conflict {
                manager: manager.clone(),
                field: shortened(path.to_string()),
            }));
        }
        listed
    }
}

fn owner(entry: &Entry) -> String {
    let mut text = quoted(&entry.manager);
    if !entry.subresource.is_empty() {
        text.push_str(&format!(" with subresource {}", quoted(&entry.subresource)));
    }
    if entry.operation == Operation::Update {
        text.push_str(&format!(" using {}", entry.api_version));
    }
    text
}

impl fmt::Display for Conflicts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let listed = self.listed();
        if let [one] = listed.as_slice() {
            return write!(f, "Apply failed with 1 conflict: {}: {}", one.message(), one.field);
        }
        let mut lines = Vec::new();
        for of_one in listed.chunk_by(|one, next| one.manager == next.manager) {
            let manager = of_one.first().map_or("", |one| one.manager.as_str());
            lines.push(format!("conflicts with {manager}:"));
            lines.extend(of_one.iter().map(|one| format!("- {}", one.field)));
        }
        let all = self.len();
        if all > listed.len() {
            lines.push(format!("and {} more", all - listed.len()));
        }
        write!(f, "Apply failed with {all} conflicts: {}", lines.join("\n"))
    }
}
