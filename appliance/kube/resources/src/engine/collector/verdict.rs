//! What becomes of an object that has owners: a decision, made from what was found of them.
//!
//! The rules are upstream's (`kube-controller-manager` `pkg/controller/garbagecollector`
//! `attemptToDeleteItem`).

use super::super::{FOREGROUND, ORPHAN, Propagation};
use super::head::Head;

/// What an owner reference leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// The owner, staying.
    Solid,
    /// The owner, waiting for its dependents to be deleted.
    Waiting,
    /// Nothing, or another object of that name.
    Absent,
    /// That cannot be told: the kind is not served, or an object of the whole box names one of a
    /// namespace. Then the dependent is left alone.
    Unknown,
}

/// What there is below an object: the objects that name it as their owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Below {
    /// Nothing.
    Nothing,
    /// Dependents.
    Dependents,
    /// Dependents, of which one waits for its own, and so perhaps for this very object: a circle.
    Circle,
}

/// What is to be done about an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing.
    Keep,
    /// Of its owners, it forgets those that are not [`Found::Solid`].
    Forget,
    /// It is deleted; `unblock` says that it may not hold up its owners any longer.
    Delete { policy: Propagation, unblock: bool },
}

/// Judges the object with this `head`: `owners` are what its references lead to, one by one.
pub(crate) fn verdict(head: &Head, owners: &[Found], below: Below) -> Verdict {
    if head.is_deleting() || owners.is_empty() || owners.contains(&Found::Unknown) {
        return Verdict::Keep;
    }
    if owners.contains(&Found::Solid) {
        return match owners.iter().all(|one| *one == Found::Solid) {
            true => Verdict::Keep,
            false => Verdict::Forget,
        };
    }
    let waited_for = owners.contains(&Found::Waiting) && below != Below::Nothing;
    let policy = if waited_for { Propagation::Foreground } else { wished(head) };
    Verdict::Delete { policy, unblock: waited_for && below == Below::Circle }
}

/// What the object's own finalizers say of its dependents.
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
    use super::{Below, Found, Head, Verdict, verdict};

    fn head(finalizers: &[&str], deleting: bool) -> Head {
        Head {
            finalizers: finalizers.iter().map(|one| (*one).to_owned()).collect(),
            deletion_timestamp: deleting.then(|| "2026-11-20T10:00:00Z".to_owned()),
            ..Head::default()
        }
    }

    #[test]
    fn owners_decide() {
        use Below::{Circle, Dependents, Nothing};
        use Found::{Absent, Solid, Unknown, Waiting};
        use Propagation::{Background, Foreground, Orphan};
        let delete = |policy, unblock| Verdict::Delete { policy, unblock };
        let table: [(&[&str], &[Found], Below, Verdict); 17] = [
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
            // What is going already goes by itself.
            let going = verdict(&head(finalizers, true), owners, below);
            assert_eq!(going, Verdict::Keep, "{finalizers:?} {owners:?} {below:?}");
        }
    }
}
