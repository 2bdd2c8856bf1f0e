//! Effect of a write on the ownership of all managers, and of an apply on the object
//! (structured-merge-diff, `merge/update.go`).

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use crate::conflict::{ApplyError, Conflicts};
use crate::managers::{Entry, Managers, Operation};
use crate::schema::Schema;
use crate::set::Set;
use crate::typed::{Comparison, Mismatches, Typed, reconcile};
use crate::value::equal;

/// Name of the temporary manager of a write other than an apply. The fields are then added to the
/// entry of the real manager.
pub(crate) const CURRENT: &str = "current-operation";

/// Schemas and settings for the writes of one kind.
pub(crate) struct Updater<'a> {
    /// API version of the objects.
    pub version: &'a str,
    /// Schemas of all served versions.
    pub schemas: &'a BTreeMap<String, Arc<Schema>>,
    /// Fields that a write to this object or subresource cannot change, so that no manager becomes
    /// their owner.
    pub reset: &'a Set,
}

/// Returns a function that converts mismatches to an error; `attempted` is the failed operation.
fn failed(attempted: impl fmt::Display) -> impl FnOnce(Mismatches) -> ApplyError {
    move |mismatches| ApplyError::Failed(format!("{attempted}: {mismatches}"))
}

impl Updater<'_> {
    /// Converts the object to another version; changes only `apiVersion` and the schema. Returns
    /// `None` if the version is not served.
    fn convert<'t>(
        &'t self,
        object: &'t Typed<'t>,
        version: &str,
    ) -> Result<Option<Cow<'t, Typed<'t>>>, Mismatches> {
        if object.value()["apiVersion"] == *version {
            return Ok(Some(Cow::Borrowed(object)));
        }
        let Some(schema) = self.schemas.get(version) else { return Ok(None) };
        let mut value = object.value().clone();
        if let Some(fields) = value.as_object_mut() {
            fields.insert("apiVersion".to_owned(), Value::from(version));
        }
        Typed::new(schema, Cow::Owned(value)).map(|typed| Some(Cow::Owned(typed)))
    }

    /// Returns the managers after a write, not an apply, that changed `live` to `new`. [`CURRENT`]
    /// owns the fields that the write changed.
    pub(crate) fn update(
        &self,
        live: &Typed<'_>,
        new: &Typed<'_>,
        managers: Managers,
    ) -> Result<Managers, ApplyError> {
        let managers = self.reconcile(live, managers)?;
        let (mut managers, compare) = self.take_over(live, new, managers, CURRENT, true)?;
        let mut set = compare.modified.union(&compare.added);
        set = set.recursive_difference(self.reset);
        if !set.is_empty() {
            let current = Entry {
                manager: String::new(),
                operation: Operation::Update,
                api_version: self.version.to_owned(),
                subresource: String::new(),
                time: None,
                set,
            };
            managers.entries.insert(CURRENT.to_owned(), current);
        }
        Ok(managers)
    }

    /// Returns object and managers after an apply; no object if the apply changes nothing. `entry`
    /// is the applier's entry without fields; they are taken from `config`.
    pub(crate) fn apply(
        &self,
        live: &Typed<'_>,
        config: &Typed<'_>,
        managers: Managers,
        entry: Entry,
        force: bool,
    ) -> Result<(Option<Value>, Managers), ApplyError> {
        let mut managers = self.reconcile(live, managers)?;
        let merged = live.merge(config).map_err(failed("failed to merge config"))?;
        let id = entry.identifier();
        let last = managers.entries.remove(&id);
        let set = config.field_set().recursive_difference(self.reset);
        let time = last.as_ref().and_then(|last| last.time);
        managers.entries.insert(id.clone(), Entry { set, time, ..entry });
        let new = self.prune(merged, &managers, last.as_ref())?;
        let (managers, _) = self.take_over(live, &new, managers, &id, force)?;
        let changed = !equal(live.value(), new.value());
        Ok((changed.then(|| new.into_value()), managers))
    }

    /// Removes the fields that `workflow` changed from the sets of all other managers; without
    /// `force`, a conflict is an error.
    fn take_over(
        &self,
        old: &Typed<'_>,
        new: &Typed<'_>,
        mut managers: Managers,
        workflow: &str,
        force: bool,
    ) -> Result<(Managers, Comparison), ApplyError> {
        let compare = old.compare(new).map_err(failed("failed to compare objects"))?;
        let compare = compare.without(self.reset);
        let mut versions: BTreeMap<String, Option<Comparison>> = BTreeMap::new();
        versions.insert(self.version.to_owned(), Some(compare.clone()));
        for entry in managers.values() {
            if !versions.contains_key(&entry.api_version) {
                let compare = self.compare_at(old, new, &entry.api_version)?;
                versions.insert(entry.api_version.clone(), compare);
            }
        }
        let mut conflicts = Conflicts::default();
        managers.entries.retain(|id, entry| {
            if id == workflow {
                return true;
            }
            // The owner of fields in a version that is no longer served loses them.
            let Some(Some(compare)) = versions.get(&entry.api_version) else { return false };
            let changed = entry.set.intersection(&compare.modified.union(&compare.added));
            entry.set = entry.set.difference(&changed).difference(&compare.removed);
            if !changed.is_empty() {
                conflicts.add(entry, changed);
            }
            true
        });
        if !force && !conflicts.is_empty() {
            return Err(ApplyError::Conflicts(conflicts));
        }
        managers.entries.retain(|_, entry| !entry.set.is_empty());
        Ok((managers, compare))
    }

    fn compare_at(
        &self,
        old: &Typed<'_>,
        new: &Typed<'_>,
        version: &str,
    ) -> Result<Option<Comparison>, ApplyError> {
        let old = self.convert(old, version).map_err(failed("failed to convert old object"))?;
        let new = self.convert(new, version).map_err(failed("failed to convert new object"))?;
        match (old, new) {
            (Some(old), Some(new)) => {
                old.compare(&new).map(Some).map_err(failed("failed to compare objects"))
            }
            _ => Ok(None),
        }
    }

    /// Removes fields of the applier's last apply that are not in the new configuration and have no
    /// other owner.
    fn prune<'t>(
        &'t self,
        merged: Typed<'t>,
        managers: &Managers,
        last: Option<&Entry>,
    ) -> Result<Typed<'t>, ApplyError> {
        let Some(last) = last.filter(|last| !last.set.is_empty()) else { return Ok(merged) };
        let then = self.convert(&merged, &last.api_version).map_err(failed(
            "failed to prune fields: failed to convert merged object to last applied version",
        ))?;
        let pruned = match then {
            Some(then) => {
                let gone = named(&then, &last.set);
                let pruned = then.remove(&gone);
                let pruned = self.add_back_owned(&then, pruned, &last.api_version, managers)?;
                let kept = self.add_back_dangling(&then, &pruned, last)?;
                let now = self.convert(&kept, self.version);
                let now = now.map_err(failed("failed to prune fields"))?;
                now.map(|now| now.into_owned().into_value())
            }
            None => None,
        };
        Ok(match pruned {
            Some(pruned) => Typed::unchecked(merged.schema(), pruned),
            None => merged,
        })
    }

    /// Restores removed fields that a manager owns, including the applier by its new configuration.
    fn add_back_owned<'t>(
        &'t self,
        merged: &Typed<'t>,
        pruned: Typed<'t>,
        version: &str,
        managers: &Managers,
    ) -> Result<Typed<'t>, ApplyError> {
        let mut owned: BTreeMap<&str, Set> = BTreeMap::new();
        for entry in managers.values() {
            owned.entry(&entry.api_version).or_default().extend(&entry.set);
        }
        let mut pruned = pruned;
        // The version of the pruned object comes first.
        let first = owned.remove(version).map(|set| (version, set));
        for (version, owned) in first.into_iter().chain(owned) {
            let at = |which: &str, object| {
                self.convert(object, version).map_err(failed(format!(
                    "failed to prune fields: failed add back owned items: failed to convert \
                     {which} object at version {version}"
                )))
            };
            let back = match (at("merged", merged)?, at("pruned", &pruned)?) {
                (Some(merged), Some(pruned)) => {
                    let mut kept = named(&pruned, &pruned.field_set());
                    kept.extend(&named(&merged, &owned));
                    let gone = named(&merged, &merged.field_set()).difference(&kept);
                    merged.remove(&gone).into_value()
                }
                _ => continue,
            };
            let schema = self.schemas.get(version).map_or(merged.schema(), |schema| schema);
            pruned = Typed::unchecked(schema, back);
        }
        Ok(pruned)
    }

    /// Restores removed fields that the applier's last apply did not own.
    fn add_back_dangling<'t>(
        &'t self,
        merged: &Typed<'t>,
        pruned: &Typed<'t>,
        last: &Entry,
    ) -> Result<Typed<'t>, ApplyError> {
        let pruned = self.convert(pruned, &last.api_version).map_err(failed(
            "failed to prune fields: failed add back dangling items: failed to convert pruned \
             object to last applied version",
        ))?;
        let Some(pruned) = pruned else { return Ok(merged.clone()) };
        let pruned_set = named(&pruned, &pruned.field_set());
        let merged_set = named(merged, &merged.field_set());
        let gone = merged_set.difference(&pruned_set).intersection(&named(merged, &last.set));
        Ok(merged.remove(&gone))
    }

    /// Converts the managers' sets to the current schema.
    fn reconcile(&self, live: &Typed<'_>, mut managers: Managers) -> Result<Managers, ApplyError> {
        let mut served: BTreeMap<String, bool> = BTreeMap::new();
        for entry in managers.values() {
            if !served.contains_key(&entry.api_version) {
                let at_version = self.convert(live, &entry.api_version);
                let at_version = at_version.map_err(|why| ApplyError::Failed(why.to_string()))?;
                served.insert(entry.api_version.clone(), at_version.is_some());
            }
        }
        managers.entries.retain(|_, entry| {
            if served.get(&entry.api_version) != Some(&true) {
                return false;
            }
            let schema = match self.schemas.get(&entry.api_version) {
                Some(schema) => schema.as_ref(),
                None => live.schema(),
            };
            if let Some(set) = reconcile(schema, &entry.set) {
                entry.set = set;
            }
            true
        });
        Ok(managers)
    }
}

fn named(object: &Typed<'_>, set: &Set) -> Set {
    set.with_named_fields(object.schema(), Some(object.schema().root()))
}
