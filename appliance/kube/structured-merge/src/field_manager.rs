//! Entry points for every write of an API server (apimachinery, `util/managedfields/internal`:
//! `fieldmanager.go` and the managers that it combines).

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::conflict::ApplyError;
use crate::last_applied;
use crate::managers::{Entry, Managers, Operation};
use crate::path::Path;
use crate::schema::Schema;
use crate::set::Set;
use crate::typed::{Mismatches, Typed};
use crate::updater::{CURRENT, Updater};

/// Manager of fields that existed in an object before its fields were tracked.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";
/// Manager whose applies also update the annotation of client-side apply.
const KUBECTL: &str = "kubectl";

/// Fields without owner: fields that the server writes, and fields that identify the object.
const UNOWNED: [&str; 9] = [
    "name",
    "namespace",
    "creationTimestamp",
    "selfLink",
    "uid",
    "clusterName",
    "generation",
    "managedFields",
    "resourceVersion",
];

/// Field ownership rules of one kind for the object itself or one subresource.
#[derive(Debug, Clone, Copy)]
pub struct FieldManager<'a> {
    /// API version of the request, such as `apps/v1`, and of all objects in the calls.
    pub api_version: &'a str,
    /// Name of the kind.
    pub kind: &'a str,
    /// Subresource that is written; empty for the object itself.
    pub subresource: &'a str,
    /// Merge schema of each served version; includes [`FieldManager::api_version`].
    pub schemas: &'a BTreeMap<String, Arc<Schema>>,
    /// Fields that a write to this object or subresource cannot change, including all fields below
    /// them.
    pub reset: &'a Set,
}

/// Role of an object in a write.
#[derive(Debug, Clone, Copy)]
enum Role {
    /// Applied configuration; the only object that must not contain duplicate list items.
    Config,
    /// Stored object that an apply is merged into.
    Live,
    /// Object before an update.
    Old,
    /// Object after an update.
    New,
}

impl Role {
    /// Returns the parts of an error message before and after the object's name, for an object that
    /// does not match its type.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Config => ("failed to create typed patch object", ""),
            Self::Live => ("failed to create typed live object", ""),
            Self::Old => ("failed to convert live object", " to smd typed"),
            Self::New => ("failed to convert new object", " to smd typed"),
        }
    }
}

impl FieldManager<'_> {
    /// Sets `metadata.managedFields` of `new`, the result of a create (no `live`), an update or a
    /// patch. All other fields of `new` stay.
    ///
    /// # Errors
    /// The objects do not match the schema. `new` then has no managedFields, because wrong entries
    /// would be worse.
    pub fn update(
        &self,
        live: Option<&Value>,
        new: &mut Value,
        manager: &str,
        now: Timestamp,
    ) -> Result<(), ApplyError> {
        let managers = self.managers_before(live, new);
        remove_managed_fields(new);
        // An object that was not tracked from its creation is not tracked later.
        if managers.is_empty() && live.is_some_and(has_uid) {
            return Ok(());
        }
        let empty = self.empty();
        let managers = self.track(live.unwrap_or(&empty), new, managers, manager, now)?;
        set_managed_fields(new, &managers);
        Ok(())
    }

    /// Returns the object after `manager` applied `config` to `live` (`None`: the apply creates the
    /// object), with its managedFields. An apply without changes returns `live`.
    ///
    /// # Errors
    /// [`ApplyError::Conflicts`] if `force` is false and other managers own fields that the apply
    /// would change; other errors if `config` is invalid.
    pub fn apply(
        &self,
        live: Option<&Value>,
        config: &Value,
        manager: &str,
        force: bool,
        now: Timestamp,
    ) -> Result<Value, ApplyError> {
        self.check_kind(config)?;
        let empty = self.empty();
        let live = live.unwrap_or(&empty);
        let managers = Managers::read(&live["metadata"]["managedFields"])
            .map_err(|why| ApplyError::Failed(format!("failed to decode managed fields: {why}")))?;
        let apply = |force| self.merge(live, config, managers.clone(), manager, force, now);
        let mut applied = apply(force);
        if manager == KUBECTL
            && let Err(ApplyError::Conflicts(conflicts)) = &applied
            && let Some(allowed) = self.taken_from_client_side_apply(live)
        {
            let left = conflicts.without(&allowed);
            applied = if left.is_empty() { apply(true) } else { Err(ApplyError::Conflicts(left)) };
        }
        let (mut new, managers) = applied?;
        if manager == KUBECTL {
            last_applied::refresh(&mut new, config);
        }
        set_managed_fields(&mut new, &managers);
        Ok(new)
    }

    /// Checks a configuration with `schema`, the schema of the request's version. Used for objects
    /// that are stored in another form.
    ///
    /// # Errors
    /// The configuration is of another kind, or does not match the schema.
    pub fn check_config(&self, config: &Value, schema: &Schema) -> Result<(), ApplyError> {
        self.check_kind(config)?;
        let typed = Typed::new(schema, Cow::Borrowed(config));
        typed.map(drop).map_err(|why| self.misfit(Role::Config, config, &why))
    }

    /// Returns the managers before a write. A client may write `managedFields`, but not by a
    /// subresource. Missing or invalid entries in the request do not delete the stored entries.
    fn managers_before(&self, live: Option<&Value>, new: &Value) -> Managers {
        let read = |object: &Value| Managers::read(&object["metadata"]["managedFields"]);
        let stored = || live.and_then(|live| read(live).ok()).unwrap_or_default();
        if !self.subresource.is_empty() {
            return stored();
        }
        if Managers::is_reset(&new["metadata"]["managedFields"]) {
            return Managers::default();
        }
        match read(new) {
            Ok(managers) if !managers.is_empty() => managers,
            _ => stored(),
        }
    }

    /// Returns the managers after a write by `manager` that changed `live` to `new`.
    fn track(
        &self,
        live: &Value,
        new: &Value,
        managers: Managers,
        manager: &str,
        now: Timestamp,
    ) -> Result<Managers, ApplyError> {
        let new = self.typed(Role::New, new)?;
        let live = self.typed(Role::Old, live)?;
        let mut managers = self.updater().update(&live, &new, managers)?;
        if let Some(current) = managers.entries.remove(CURRENT) {
            let mut set = current.set.difference(&unowned());
            if !set.is_empty() {
                let entry = self.entry(manager, Operation::Update);
                let id = entry.identifier();
                if let Some(before) = managers.entries.get(&id) {
                    set.extend(&before.set);
                }
                managers.entries.insert(id, Entry { set, time: Some(now), ..entry });
            }
        }
        managers.cap();
        Ok(managers)
    }

    fn merge(
        &self,
        live: &Value,
        config: &Value,
        mut managers: Managers,
        manager: &str,
        force: bool,
        now: Timestamp,
    ) -> Result<(Value, Managers), ApplyError> {
        if managers.is_empty() {
            let empty = self.empty();
            managers =
                self.track(&empty, live, managers, BEFORE_FIRST_APPLY, now).map_err(|why| {
                    let attempted = "failed to create manager for existing fields";
                    ApplyError::Failed(format!("{attempted}: {why}"))
                })?;
        }
        if config["metadata"].get("managedFields").is_some_and(|fields| !fields.is_null()) {
            return Err(ApplyError::BadRequest("metadata.managedFields must be nil".to_owned()));
        }
        let typed_config = self.typed(Role::Config, config)?;
        let typed_live = self.typed(Role::Live, live)?;
        let entry = self.entry(manager, Operation::Apply);
        let id = entry.identifier();
        let (new, mut managers) =
            self.updater().apply(&typed_live, &typed_config, managers, entry, force)?;
        if let Some(mut entry) = managers.entries.remove(&id) {
            entry.set = entry.set.difference(&unowned());
            if new.is_some() {
                entry.time = Some(now);
            }
            if !entry.set.is_empty() {
                managers.entries.insert(id, entry);
            }
        }
        Ok((new.unwrap_or_else(|| live.clone()), managers))
    }

    /// Returns the fields that client-side apply set and that no later write changed.
    fn taken_from_client_side_apply(&self, live: &Value) -> Option<Set> {
        let config = last_applied::read(live)?;
        if config["apiVersion"] != *self.api_version {
            return None;
        }
        let live = self.typed(Role::Config, live).ok()?;
        let config = self.typed(Role::Config, &config).ok()?;
        let compare = config.compare(&live).ok()?;
        let set = config.field_set();
        Some(
            set.difference(&compare.modified)
                .difference(&compare.added)
                .difference(&compare.removed),
        )
    }

    fn check_kind(&self, config: &Value) -> Result<(), ApplyError> {
        let text = |field: &str| config[field].as_str().unwrap_or_default();
        if text("apiVersion") == self.api_version && text("kind") == self.kind {
            return Ok(());
        }
        let given = group_version_kind(text("apiVersion"), text("kind"));
        Err(ApplyError::BadRequest(format!("invalid object type: {given}")))
    }

    fn typed<'t>(&'t self, role: Role, value: &'t Value) -> Result<Typed<'t>, ApplyError> {
        let schema = self.schemas.get(self.api_version).ok_or_else(|| {
            let kind = group_version_kind(self.api_version, self.kind);
            ApplyError::Failed(format!("no corresponding type for {kind}"))
        })?;
        let typed = match role {
            Role::Config => Typed::new(schema, Cow::Borrowed(value)),
            _ => Typed::with_duplicates(schema, Cow::Borrowed(value)),
        };
        typed.map_err(|why| self.misfit(role, value, &why))
    }

    fn misfit(&self, role: Role, value: &Value, why: &Mismatches) -> ApplyError {
        let kind = group_version_kind(self.api_version, self.kind);
        let text = |field: &str| value["metadata"][field].as_str().unwrap_or_default();
        let (attempted, end) = role.words();
        let (namespace, name) = (text("namespace"), text("name"));
        ApplyError::Failed(format!("{attempted} ({namespace}/{name}; {kind}){end}: {why}"))
    }

    fn updater(&self) -> Updater<'_> {
        Updater { version: self.api_version, schemas: self.schemas, reset: self.reset }
    }

    fn entry(&self, manager: &str, operation: Operation) -> Entry {
        let manager = if manager.is_empty() { "unknown" } else { manager };
        Entry {
            manager: manager.to_owned(),
            operation,
            api_version: self.api_version.to_owned(),
            subresource: self.subresource.to_owned(),
            time: None,
            set: Set::default(),
        }
    }

    fn empty(&self) -> Value {
        json!({ "apiVersion": self.api_version, "kind": self.kind })
    }
}

fn unowned() -> Set {
    let metadata = UNOWNED.iter().map(|name| Path::fields(&["metadata", name]));
    let top = ["apiVersion", "kind", "metadata"].map(|name| Path::fields(&[name]));
    Set::of(metadata.chain(top))
}

fn has_uid(object: &Value) -> bool {
    object["metadata"]["uid"].as_str().is_some_and(|uid| !uid.is_empty())
}

fn remove_managed_fields(object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
}

fn set_managed_fields(object: &mut Value, managers: &Managers) {
    remove_managed_fields(object);
    let Some(fields) = object.as_object_mut() else { return };
    let Some(managed) = managers.write() else { return };
    let metadata = fields.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
    if let Some(metadata) = metadata.as_object_mut() {
        metadata.insert("managedFields".to_owned(), managed);
    }
}

/// Formats group, version and kind for a message: `apps/v1, Kind=Deployment`. The core group is
/// empty: `/v1, Kind=Secret`.
fn group_version_kind(api_version: &str, kind: &str) -> String {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    format!("{group}/{version}, Kind={kind}")
}

#[cfg(test)]
mod tests;
