//! Conflicts: names that several Hardware claim.

use std::fmt::Display;

use api::meta::ObjectKey;

use super::Index;
use super::claims::Claimant;

/// Conflict of two Hardware that claim one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contested {
    /// Kind of the name: a MAC, an address or an agent ID.
    pub what: &'static str,
    /// Value of the contested name.
    pub name: String,
    /// Hardware that owns the name in the index.
    pub owner: ObjectKey,
    /// Hardware whose claim is ignored.
    pub other: ObjectKey,
}

impl Contested {
    /// Returns the conflict between the first and the last of several claimants.
    pub(super) fn of(
        what: &'static str,
        name: &dyn Display,
        claimants: &[Claimant],
    ) -> Option<Self> {
        let [(.., owner), .., (.., other)] = claimants else { return None };
        tracing::warn!(%name, %owner, %other, "two Hardware have the same {what}: using one");
        Some(Self { what, name: name.to_string(), owner: owner.clone(), other: other.clone() })
    }
}

impl Index {
    /// Returns all MACs and addresses that several Hardware claim, sorted.
    pub fn contested(&self) -> Vec<Contested> {
        let tables = self.read();
        let of = |what, name: String, owner: &ObjectKey, other: &ObjectKey| Contested {
            what,
            name,
            owner: owner.clone(),
            other: other.clone(),
        };
        let macs = tables.by_mac.contested();
        let macs = macs.map(|(name, owner, other)| of("MAC", name.to_string(), owner, other));
        let addresses = tables.by_address.contested();
        let addresses =
            addresses.map(|(name, owner, other)| of("address", name.to_string(), owner, other));
        let mut all: Vec<_> = macs.chain(addresses).collect();
        all.sort_by(|one, other| (one.what, &one.name).cmp(&(other.what, &other.name)));
        all
    }
}
