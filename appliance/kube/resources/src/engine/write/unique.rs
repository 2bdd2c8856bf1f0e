//! Refusal of a write with a unique value that another object of the kind already has.
//!
//! An index in memory has the objects that may have a value. The writing transaction reads these
//! objects, so an outdated entry causes no refusal. No entry is missing, because all writes pass
//! this index.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use store::{Key, Txn};

use crate::definition::{UniqueValue, UniqueValues};
use crate::engine::Place;
use crate::object::{decode, meta};
use crate::status_error::{StatusError, failed};
use schema::FieldError;

/// Maximum index entries of one kind. Above the limit, the index is rebuilt from the store.
const ENTRIES_MAX: usize = 1 << 18;

/// Index of one kind: keys of the objects that may have a value, by category and value.
type Holders = HashMap<(&'static str, String), BTreeSet<Key>>;

/// Indexes of the kinds with unique values, by resource.
#[derive(Debug, Default)]
pub(crate) struct Unique(Mutex<HashMap<String, (Holders, usize)>>);

impl Unique {
    /// Checks that no other object has the new values of `new`, and adds them to the index.
    ///
    /// # Errors
    /// 422 with the name of the other object that has the value.
    pub(in crate::engine) fn check(
        &self,
        txn: &Txn<'_>,
        (place, key): (&Place, &Key),
        new: &Value,
        old: Option<&Value>,
    ) -> Result<(), StatusError> {
        let Some(values) = &place.definition.unique else { return Ok(()) };
        let before = old.map(|old| values(old)).unwrap_or_default();
        let is_fresh = |it: &UniqueValue| !before.iter().any(|had| same(had, it));
        let fresh: Vec<UniqueValue> = values(new).into_iter().filter(is_fresh).collect();
        if fresh.is_empty() {
            return Ok(());
        }
        let mut kinds = self.kinds();
        if kinds.get(&key.resource).is_none_or(|(_, count)| *count > ENTRIES_MAX) {
            kinds.insert(key.resource.clone(), build(txn, place, values)?);
        }
        let (holders, count) = kinds.entry(key.resource.clone()).or_default();
        let mut errors = Vec::new();
        for one in &fresh {
            let others = holders.entry((one.what, one.value.clone())).or_default();
            for other in others.iter().filter(|other| *other != key) {
                if has(txn, place, values, other, one)? {
                    errors.push(taken(place, one, other));
                    break;
                }
            }
            *count += usize::from(others.insert(key.clone()));
        }
        if errors.is_empty() {
            return Ok(());
        }
        Err(StatusError::invalid(&place.definition, meta(new, "name"), &errors))
    }

    fn kinds(&self) -> MutexGuard<'_, HashMap<String, (Holders, usize)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn same(one: &UniqueValue, other: &UniqueValue) -> bool {
    (one.what, &one.value) == (other.what, &other.value)
}

fn build(
    txn: &Txn<'_>,
    place: &Place,
    values: &UniqueValues,
) -> Result<(Holders, usize), StatusError> {
    let (mut holders, mut count) = (Holders::new(), 0);
    let rows = txn.list(&place.definition.id(), None);
    for (key, stored) in rows.map_err(|error| failed("list the objects of a kind", &error))? {
        for one in values(&decode(&place.definition, &stored)?) {
            let others = holders.entry((one.what, one.value)).or_default();
            count += usize::from(others.insert(key.clone()));
        }
    }
    Ok((holders, count))
}

/// Returns true if the stored object has the value now.
fn has(
    txn: &Txn<'_>,
    place: &Place,
    values: &UniqueValues,
    key: &Key,
    value: &UniqueValue,
) -> Result<bool, StatusError> {
    let stored = txn.get(key).map_err(|error| failed("read an object", &error))?;
    let Some(stored) = stored else { return Ok(false) };
    let object = decode(&place.definition, &stored)?;
    Ok(values(&object).iter().any(|one| same(one, value)))
}

fn taken(place: &Place, one: &UniqueValue, other: &Key) -> FieldError {
    let (kind, namespace, name) = (&place.definition.kind, &other.namespace, &other.name);
    let detail = format!(
        "is already the {} of {kind} {namespace}/{name}: change one of the two objects, or delete \
         the other",
        one.what
    );
    FieldError::invalid(one.field.clone(), &Value::from(one.value.as_str()), detail)
}
