//! What an apply may not change, in the words of an API server (apimachinery,
//! `util/managedfields/internal/conflict.go`).

use std::fmt;

use crate::managers::{Entry, Operation};
use crate::set::Set;
use crate::typed::shortened;
use go_text::quoted;

/// The most conflicts that are told; the rest is counted.
const MAX_CONFLICTS: usize = 100;

/// A field that another manager owns and the apply would change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The owner: its name, subresource and, for plain writes, version.
    pub manager: String,
    /// The field, as paths are printed.
    pub field: String,
}

impl Conflict {
    /// The sentence for one conflict; the field stands beside it.
    pub fn message(&self) -> String {
        format!("conflict with {}", self.manager)
    }
}

/// Everything an apply may not change without force, by manager; never empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Conflicts(Vec<(String, Set)>);

impl Conflicts {
    /// The fields of `owned`, which belong to `entry`.
    pub(crate) fn add(&mut self, entry: &Entry, owned: Set) {
        self.0.push((owner(entry), owned));
    }

    /// Those that `allowed` does not hold.
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

    /// The conflicts, up to a limit; those of one manager stand together.
    pub fn told(&self) -> Vec<Conflict> {
        let mut told: Vec<Conflict> = Vec::new();
        for (manager, owned) in &self.0 {
            let paths = owned.first_paths(MAX_CONFLICTS - told.len());
            told.extend(paths.iter().map(|path| Conflict {
                manager: manager.clone(),
                field: shortened(path.to_string()),
            }));
        }
        told
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
        let told = self.told();
        if let [one] = told.as_slice() {
            return write!(f, "Apply failed with 1 conflict: {}: {}", one.message(), one.field);
        }
        let mut lines = Vec::new();
        for of_one in told.chunk_by(|one, next| one.manager == next.manager) {
            let manager = of_one.first().map_or("", |one| one.manager.as_str());
            lines.push(format!("conflicts with {manager}:"));
            lines.extend(of_one.iter().map(|one| format!("- {}", one.field)));
        }
        let all = self.len();
        if all > told.len() {
            lines.push(format!("and {} more", all - told.len()));
        }
        write!(f, "Apply failed with {all} conflicts: {}", lines.join("\n"))
    }
}
