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

/// Maximum outdated entries of a small kind before a rebuild; about 300 bytes each.
pub(in crate::engine) const OUTDATED_MAX: usize = 8192;

/// Category, value and possible holder of each entry of a kind; maximum entries before a rebuild.
type Index = (BTreeSet<(&'static str, String, Key)>, usize);

/// Indexes of the kinds with unique values, by resource.
#[derive(Debug, Default)]
pub(crate) struct Unique(Mutex<HashMap<String, Index>>);

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
        // The write has not changed the store yet, so a write that fails loses no value here.
        if kinds.get(&key.resource).is_none_or(|(entries, limit)| entries.len() > *limit) {
            kinds.insert(key.resource.clone(), build(txn, place, values)?);
        }
        let (entries, _) = kinds.entry(key.resource.clone()).or_default();
        let mut errors = Vec::new();
        for one in &fresh {
            let [resource, namespace, name] = [const { String::new() }; 3];
            let first = (one.what, one.value.clone(), Key { resource, namespace, name });
            let holders = entries.range(first..).map_while(|(what, value, holder)| {
                ((*what, value) == (one.what, &one.value)).then_some(holder)
            });
            for other in holders.filter(|other| *other != key) {
                if has(txn, place, values, other, one)? {
                    errors.push(taken(place, one, other));
                    break;
                }
            }
            entries.insert((one.what, one.value.clone(), key.clone()));
        }
        if errors.is_empty() {
            return Ok(());
        }
        Err(StatusError::invalid(&place.definition, meta(new, "name"), &errors))
    }

    pub(in crate::engine) fn kinds(&self) -> MutexGuard<'_, HashMap<String, Index>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn same(one: &UniqueValue, other: &UniqueValue) -> bool {
    (one.what, &one.value) == (other.what, &other.value)
}

fn build(txn: &Txn<'_>, place: &Place, values: &UniqueValues) -> Result<Index, StatusError> {
    let mut entries = BTreeSet::new();
    let rows = txn.list(&place.definition.id(), None);
    for (key, stored) in rows.map_err(|error| failed("list the objects of a kind", &error))? {
        let own = values(&decode(&place.definition, &stored)?).into_iter();
        entries.extend(own.map(|one| (one.what, one.value, key.clone())));
    }
    let limit = OUTDATED_MAX + 2 * entries.len();
    Ok((entries, limit))
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
