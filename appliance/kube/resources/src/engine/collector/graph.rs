//! Graph of owner references, in which owners are identified by uid.

use std::collections::{BTreeSet, HashMap};

use store::Key;

use super::head::{Head, Owner};

/// Owner references of all objects, and the dependents of each owner, even of a missing owner.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    owners: HashMap<Key, Vec<Owner>>,
    dependents: HashMap<String, Dependents>,
}

/// Dependents of one owner: the objects that name its uid in `ownerReferences`.
#[derive(Debug, Default)]
struct Dependents {
    keys: BTreeSet<Key>,
    /// True after the deletion of the owner was reported by the watch. A look-up in the store is
    /// not enough: the owner's kind may have been removed too.
    lost: bool,
}

impl Graph {
    /// Adds or updates an object with its present owners. Returns the object's previous owners.
    pub fn put(&mut self, key: &Key, head: &Head) -> Vec<Owner> {
        if let Some(dependents) = self.dependents.get_mut(&head.uid) {
            dependents.lost = false;
        }
        for owner in &head.owner_references {
            let dependents = self.dependents.entry(owner.uid.clone()).or_default();
            dependents.keys.insert(key.clone());
        }
        let before = match head.owner_references.is_empty() {
            true => self.owners.remove(key),
            false => self.owners.insert(key.clone(), head.owner_references.clone()),
        };
        let before = before.unwrap_or_default();
        let named = |uid: &str| head.owner_references.iter().any(|owner| owner.uid == uid);
        for owner in before.iter().filter(|owner| !named(&owner.uid)) {
            self.part(&owner.uid, key);
        }
        before
    }

    /// Removes a deleted object from the index. Returns the owners of the object.
    pub fn remove(&mut self, key: &Key) -> Vec<Owner> {
        let owners = self.owners.remove(key).unwrap_or_default();
        for owner in &owners {
            self.part(&owner.uid, key);
        }
        owners
    }

    fn part(&mut self, uid: &str, key: &Key) {
        if let Some(dependents) = self.dependents.get_mut(uid) {
            dependents.keys.remove(key);
            if dependents.keys.is_empty() {
                self.dependents.remove(uid);
            }
        }
    }

    /// Records that the object with the uid `uid` was deleted.
    pub fn lose(&mut self, uid: &str) {
        if let Some(dependents) = self.dependents.get_mut(uid) {
            dependents.lost = true;
        }
    }

    /// Returns the uids of the owners of `key` whose deletion was recorded by [`Self::lose`].
    pub fn lost(&self, key: &Key) -> BTreeSet<String> {
        let lost = |uid: &str| self.dependents.get(uid).is_some_and(|one| one.lost);
        let owners = self.owners.get(key).into_iter().flatten();
        owners.map(|owner| &owner.uid).filter(|uid| lost(uid)).cloned().collect()
    }

    /// Returns the objects that name `uid` as an owner.
    pub fn dependents(&self, uid: &str) -> impl Iterator<Item = &Key> {
        self.dependents.get(uid).into_iter().flat_map(|one| &one.keys)
    }

    /// Returns every object that has owners.
    pub fn owned(&self) -> impl Iterator<Item = &Key> {
        self.owners.keys()
    }
}

#[cfg(test)]
mod tests {
    use store::Key;

    use super::{Graph, Head};

    fn head(owners: &[&str]) -> Head {
        let owners: Vec<_> = owners.iter().map(|uid| serde_json::json!({ "uid": uid })).collect();
        let object = serde_json::json!({ "metadata": { "ownerReferences": owners } });
        Head::read(object.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn edges_follow_the_objects() {
        let mut graph = Graph::default();
        let (a, b) = (Key::new("/secrets", "x", "a"), Key::new("/secrets", "x", "b"));
        graph.put(&a, &head(&["1", "2"]));
        graph.put(&b, &head(&["2"]));
        assert_eq!(graph.dependents("2").collect::<Vec<_>>(), [&a, &b]);
        assert_eq!(graph.put(&a, &head(&["1"])).len(), 2);
        assert_eq!(graph.dependents("2").collect::<Vec<_>>(), [&b]);
        assert_eq!(graph.remove(&b).len(), 1);
        assert_eq!(graph.dependents("2").count(), 0);
        graph.put(&a, &head(&[]));
        assert_eq!((graph.owned().count(), graph.dependents("1").count()), (0, 0));
        assert!(graph.dependents.is_empty());
    }

    #[test]
    fn lost_owners_are_known_as_long_as_somebody_names_them() {
        let mut graph = Graph::default();
        let a = Key::new("/secrets", "x", "a");
        let lost = |graph: &Graph| graph.lost(&a).into_iter().collect::<Vec<_>>();
        graph.lose("1");
        graph.put(&a, &head(&["1", "2"]));
        assert_eq!(lost(&graph), [] as [&str; 0]);
        graph.lose("1");
        // The owner stays lost when the object is written again.
        graph.put(&a, &head(&["2", "1"]));
        assert_eq!(lost(&graph), ["1"]);
        // An owner that exists again, from a snapshot, is not lost.
        graph.put(&Key::new("/secrets", "x", "b"), &Head { uid: "1".to_owned(), ..head(&[]) });
        assert_eq!(lost(&graph), [] as [&str; 0]);
        graph.lose("2");
        graph.put(&a, &head(&["1"]));
        graph.put(&a, &head(&["1", "2"]));
        assert_eq!(lost(&graph), [] as [&str; 0]);
        graph.remove(&a);
        assert!(graph.dependents.is_empty());
    }
}
