//! Hardware that machines are about to claim. Machines that are created together would all choose
//! the same Hardware, and only the first write would succeed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use api::meta::ObjectKey;

/// Hardware that is chosen and not yet claimed, with the labels that it will have.
type Reserved = BTreeMap<ObjectKey, BTreeMap<String, String>>;

/// Reserved Hardware: at most one for each running reconcile.
#[derive(Debug, Default)]
pub struct Reservations {
    /// Hardware that is chosen and not yet claimed, with the labels of its machine.
    reserved: Mutex<Reserved>,
}

/// Reservation of one Hardware, which ends when this is dropped.
#[derive(Debug)]
pub struct Reservation {
    all: Arc<Reservations>,
    key: ObjectKey,
}

impl Reservations {
    /// Calls `choose` with the reserved Hardware, and reserves the Hardware that it returns for a
    /// machine with these labels. No other choice is made at the same time.
    pub fn reserve<T>(
        self: &Arc<Self>,
        labels: BTreeMap<String, String>,
        choose: impl FnOnce(&Reserved) -> (T, Option<ObjectKey>),
    ) -> (T, Option<Reservation>) {
        let mut reserved = self.lock();
        let (chosen, key) = choose(&reserved);
        let reservation = key.map(|key| {
            reserved.insert(key.clone(), labels);
            Reservation { all: Arc::clone(self), key }
        });
        (chosen, reservation)
    }

    fn lock(&self) -> MutexGuard<'_, Reserved> {
        self.reserved.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.all.lock().remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use api::meta::ObjectKey;

    use super::Reservations;

    #[test]
    fn a_reservation_lasts_until_it_is_dropped() {
        let all = Arc::new(Reservations::default());
        let key = ObjectKey::new("default", "nuc1");
        let is_free = || all.reserve(BTreeMap::new(), |all| (!all.contains_key(&key), None)).0;
        let (_, first) = all.reserve(BTreeMap::new(), |_| ((), Some(key.clone())));
        assert!(!is_free());
        drop(first);
        assert!(is_free());
    }
}
