//! Conflicts: addresses and agent IDs that several Hardware contain.

use std::fmt::Display;

use api::meta::ObjectKey;

use super::Index;
use super::claims::Claimant;

/// Conflict of two Hardware with the same address or agent ID.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contested {
    /// Kind of the value: `MAC`, `address` or `agent ID`.
    pub what: &'static str,
    /// Address or agent ID in conflict.
    pub name: String,
    /// Hardware that the box uses for the value.
    pub owner: ObjectKey,
    /// Hardware that the box ignores for the value.
    pub other: ObjectKey,
}

impl Contested {
    /// Returns the conflict between the first and the last claimant; `None` for fewer than two.
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
    /// Returns all conflicts of MAC and IP addresses, sorted.
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
