//! Claims of Hardware to names such as addresses. If several Hardware claim a name, the claimant
//! with the lowest rank owns the name.

use std::collections::HashMap;
use std::hash::Hash;

use api::meta::ObjectKey;
use jiff::Timestamp;

/// Rank of a claimant, lowest first: a Hardware of a person before an enrolled Hardware, then the
/// older before the newer, then by name.
pub type Claimant = (bool, Option<Timestamp>, ObjectKey);

/// Claimants of each name of one kind, in the order of their ranks.
pub struct Claims<K>(HashMap<K, Vec<Claimant>>);

impl<K> Default for Claims<K> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<K: Eq + Hash> Claims<K> {
    /// Returns the owner of a name; `None` if unclaimed.
    pub fn owner(&self, name: &K) -> Option<&ObjectKey> {
        self.0.get(name)?.first().map(|(.., key)| key)
    }

    /// Adds a claim. Returns all claimants if the claim is a new conflict, otherwise none.
    pub fn add(&mut self, name: K, claimant: &Claimant) -> &[Claimant] {
        let claimants = self.0.entry(name).or_default();
        match claimants.binary_search(claimant) {
            Ok(_) => &[],
            Err(at) => {
                claimants.insert(at, claimant.clone());
                if claimants.len() > 1 { claimants } else { &[] }
            }
        }
    }

    /// Returns the conflicts: name, owner and other claimant, with one item per other claimant.
    pub fn contested(&self) -> impl Iterator<Item = (&K, &ObjectKey, &ObjectKey)> {
        let several = self.0.iter().filter(|(_, claimants)| claimants.len() > 1);
        several.flat_map(|(name, claimants)| {
            let (owner, others) = (&claimants[0].2, &claimants[1..]);
            others.iter().map(move |(.., other)| (name, owner, other))
        })
    }

    /// Removes one claim to a name.
    pub fn remove(&mut self, name: &K, claimant: &Claimant) {
        let Some(claimants) = self.0.get_mut(name) else { return };
        claimants.retain(|other| other != claimant);
        if claimants.is_empty() {
            self.0.remove(name);
        }
    }
}
