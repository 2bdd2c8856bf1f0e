//! Claims of objects to addresses and other names. Several objects may claim one name, and the
//! first by rank owns it.

use std::collections::HashMap;
use std::hash::Hash;

use api::meta::ObjectKey;
use jiff::Timestamp;

/// Rank of a claim, lowest first. A record by a person ranks before an enrolled one, then the older
/// before the newer one. Equal ages are ordered by name.
pub type Claimant = (bool, Option<Timestamp>, ObjectKey);

/// Claims to one kind of name.
pub struct Claims<K>(HashMap<K, Vec<Claimant>>);

impl<K> Default for Claims<K> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<K: Eq + Hash> Claims<K> {
    /// Returns the owner of a name.
    pub fn owner(&self, name: &K) -> Option<&ObjectKey> {
        self.0.get(name)?.first().map(|(.., key)| key)
    }

    /// Adds a claim. Returns all claimants if the claim is new and conflicts with another one.
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

    /// Returns the names with several claims: one item for each claimant that is not the owner.
    pub fn contested(&self) -> impl Iterator<Item = (&K, &ObjectKey, &ObjectKey)> {
        let several = self.0.iter().filter(|(_, claimants)| claimants.len() > 1);
        several.flat_map(|(name, claimants)| {
            let (owner, others) = (&claimants[0].2, &claimants[1..]);
            others.iter().map(move |(.., other)| (name, owner, other))
        })
    }

    /// Removes a claim and keeps the others.
    pub fn remove(&mut self, name: &K, claimant: &Claimant) {
        let Some(claimants) = self.0.get_mut(name) else { return };
        claimants.retain(|other| other != claimant);
        if claimants.is_empty() {
            self.0.remove(name);
        }
    }
}
