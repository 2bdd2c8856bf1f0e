//! Decision of the collector about an object with owners, made from the states of the owners.
//!
//! The rules are upstream's (`kube-controller-manager` `pkg/controller/garbagecollector`
//! `attemptToDeleteItem`).

use super::super::{FOREGROUND, ORPHAN, Propagation};
use super::head::Head;

/// State of the owner that an owner reference names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OwnerState {
    /// The owner exists and is not in foreground deletion.
    Solid,
    /// The owner waits until its dependents are deleted.
    Waiting,
    /// No object of that name exists, or its uid differs.
    Absent,
    /// The state cannot be determined: the owner's kind is not served, or a cluster-scoped object
    /// names a namespaced owner. The dependent stays unchanged.
    Unknown,
}

/// State of the dependents of an object, which are the objects that name it as owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DependentState {
    /// No dependents exist for the object.
    Nothing,
    /// Dependents exist, and none waits for its own dependents.
    Dependents,
    /// A dependent waits for its own dependents, which may include this object: a possible cycle.
    Circle,
}

/// Action of the collector on an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The object stays unchanged.
    Keep,
    /// The references to owners that are not [`OwnerState::Solid`] are removed.
    Forget,
    /// The object is deleted. If `unblock` is true, the object first stops blocking its owners.
    Delete { policy: Propagation, unblock: bool },
}

/// Returns the collector's action on an object. `owners` has one state for each owner reference of
/// `head`; `below` is the state of the object's dependents.
pub(crate) fn verdict(head: &Head, owners: &[OwnerState], below: DependentState) -> Verdict {
    if head.is_deleting() || owners.is_empty() || owners.contains(&OwnerState::Unknown) {
        return Verdict::Keep;
    }
    if owners.contains(&OwnerState::Solid) {
        return match owners.iter().all(|one| *one == OwnerState::Solid) {
            true => Verdict::Keep,
            false => Verdict::Forget,
        };
    }
    let waited_for = owners.contains(&OwnerState::Waiting) && below != DependentState::Nothing;
    let policy = if waited_for { Propagation::Foreground } else { wished(head) };
    Verdict::Delete { policy, unblock: waited_for && below == DependentState::Circle }
}

/// Returns the propagation policy that the object's own finalizers request.
fn wished(head: &Head) -> Propagation {
    match (head.has(ORPHAN), head.has(FOREGROUND)) {
        (true, _) => Propagation::Orphan,
        (false, true) => Propagation::Foreground,
        (false, false) => Propagation::Background,
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::{FOREGROUND, ORPHAN, Propagation};
    use super::{DependentState, Head, OwnerState, Verdict, verdict};

    fn head(finalizers: &[&str], deleting: bool) -> Head {
        Head {
            finalizers: finalizers.iter().map(|one| (*one).to_owned()).collect(),
            deletion_timestamp: deleting.then(|| "2026-11-20T10:00:00Z".to_owned()),
            ..Head::default()
        }
    }

    #[test]
    fn owners_decide() {
        use DependentState::{Circle, Dependents, Nothing};
        use OwnerState::{Absent, Solid, Unknown, Waiting};
        use Propagation::{Background, Foreground, Orphan};
        let delete = |policy, unblock| Verdict::Delete { policy, unblock };
        let table: [(&[&str], &[OwnerState], DependentState, Verdict); 17] = [
            (&[], &[], Dependents, Verdict::Keep),
            (&[], &[Solid], Nothing, Verdict::Keep),
            (&[], &[Solid, Solid], Circle, Verdict::Keep),
            (&[], &[Unknown], Nothing, Verdict::Keep),
            (&[], &[Absent, Unknown], Nothing, Verdict::Keep),
            (&[], &[Solid, Absent, Unknown], Nothing, Verdict::Keep),
            (&[], &[Solid, Absent], Nothing, Verdict::Forget),
            (&[], &[Waiting, Solid], Dependents, Verdict::Forget),
            (&[], &[Absent], Nothing, delete(Background, false)),
            (&[], &[Absent, Absent], Circle, delete(Background, false)),
            (&[ORPHAN], &[Absent], Dependents, delete(Orphan, false)),
            (&[FOREGROUND], &[Absent], Nothing, delete(Foreground, false)),
            (&[FOREGROUND, ORPHAN], &[Absent], Nothing, delete(Orphan, false)),
            (&[], &[Waiting, Absent], Nothing, delete(Background, false)),
            (&[], &[Waiting, Absent], Dependents, delete(Foreground, false)),
            (&[ORPHAN], &[Waiting], Dependents, delete(Foreground, false)),
            (&[], &[Waiting], Circle, delete(Foreground, true)),
        ];
        for (finalizers, owners, below, expected) in table {
            let judged = verdict(&head(finalizers, false), owners, below);
            assert_eq!(judged, expected, "{finalizers:?} {owners:?} {below:?}");
            // An object already in deletion is left alone.
            let going = verdict(&head(finalizers, true), owners, below);
            assert_eq!(going, Verdict::Keep, "{finalizers:?} {owners:?} {below:?}");
        }
    }
}
