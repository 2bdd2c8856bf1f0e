//! Objects by the names that they claim: several may claim one name, and the first by rank has it.

use std::collections::HashMap;
use std::hash::Hash;

use api::meta::ObjectKey;
use jiff::Timestamp;

/// Rank of a claim: what a person wrote comes before what enrolled itself, then what is older, and
/// of two of one age the first by name.
pub type Claimant = (bool, Option<Timestamp>, ObjectKey);

/// Claims of one kind of name.
pub struct Claims<K>(HashMap<K, Vec<Claimant>>);

impl<K> Default for Claims<K> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<K: Eq + Hash> Claims<K> {
    /// Whose the name is.
    pub fn owner(&self, name: &K) -> Option<&ObjectKey> {
        self.0.get(name)?.first().map(|(.., key)| key)
    }

    /// Adds a claim. Returns the other claimants, if this is the first time that it meets them.
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

    /// Names with several claims: each with its owner and every other claimant.
    pub fn contested(&self) -> impl Iterator<Item = (&K, &ObjectKey, &ObjectKey)> {
        let several = self.0.iter().filter(|(_, claimants)| claimants.len() > 1);
        several.flat_map(|(name, claimants)| {
            let (owner, others) = (&claimants[0].2, &claimants[1..]);
            others.iter().map(move |(.., other)| (name, owner, other))
        })
    }

    /// Takes a claim back.
    pub fn remove(&mut self, name: &K, claimant: &Claimant) {
        let Some(claimants) = self.0.get_mut(name) else { return };
        claimants.retain(|other| other != claimant);
        if claimants.is_empty() {
            self.0.remove(name);
        }
    }
}
