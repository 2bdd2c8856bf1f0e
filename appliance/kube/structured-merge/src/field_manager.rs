//! What a server asks on every write (apimachinery, `util/managedfields/internal`:
//! `fieldmanager.go` and the managers it chains).

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::conflict::Conflicts;
use crate::last_applied;
use crate::managers::{Entry, Managers, Operation};
use crate::path::Path;
use crate::schema::Schema;
use crate::set::Set;
use crate::typed::{Mismatches, Typed};
use crate::updater::{CURRENT, Updater};

/// The manager of what stood in an object before anybody was tracked.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";
/// The manager whose applies also keep the annotation of client-side apply.
const KUBECTL: &str = "kubectl";

/// Fields nobody owns: the server writes them, or they name the object.
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

/// Why an apply did not happen, or a write's ownership could not be told.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Others own what the apply would change.
    #[error("{0}")]
    Conflicts(Conflicts),
    /// The configuration is of another kind or version, or says who manages it.
    #[error("{0}")]
    BadRequest(String),
    /// The configuration or the object is not what its schema says.
    #[error("{0}")]
    Failed(String),
}

/// The rules of one kind at one place: the object itself or a subresource.
#[derive(Debug, Clone, Copy)]
pub struct FieldManager<'a> {
    /// The version of the request, which all objects passed in must have: `apps/v1`.
    pub api_version: &'a str,
    /// The kind's name.
    pub kind: &'a str,
    /// The subresource that is written; empty for the object itself.
    pub subresource: &'a str,
    /// How each served version merges, [`FieldManager::api_version`] among them.
    pub schemas: &'a BTreeMap<String, Arc<Schema>>,
    /// Fields that a write at this place cannot change, with everything inside them.
    pub reset: &'a Set,
}

/// What an object is to a write.
#[derive(Debug, Clone, Copy)]
enum Role {
    /// What is applied; it alone may hold no duplicates.
    Config,
    /// What an apply is put into.
    Live,
    /// What an update started from.
    Old,
    /// What an update made of it.
    New,
}

impl Role {
    /// The sentence about one that is not of its type, around the object's name.
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
    /// Sets `metadata.managedFields` of `new`, which a create (no `live`), an update or a patch
    /// made. Everything else in `new` stays.
    ///
    /// # Errors
    /// When the objects are not what the schema says; then `new` has no managedFields any more, as
    /// wrong ones would be worse.
    pub fn update(
        &self,
        live: Option<&Value>,
        new: &mut Value,
        manager: &str,
        now: Timestamp,
    ) -> Result<(), Refused> {
        let managers = self.managers_before(live, new);
        remove_managed_fields(new);
        // Nobody is tracked on an object that was not tracked from its creation.
        if managers.is_empty() && live.is_some_and(has_uid) {
            return Ok(());
        }
        let empty = self.empty();
        let managers = self.track(live.unwrap_or(&empty), new, managers, manager, now)?;
        set_managed_fields(new, &managers);
        Ok(())
    }

    /// The object after `manager` applied `config` to `live` (none: the apply creates it), with its
    /// managedFields. An apply that changes nothing gives `live` back.
    ///
    /// # Errors
    /// Conflicts, when others own what it would change and it is not forced.
    pub fn apply(
        &self,
        live: Option<&Value>,
        config: &Value,
        manager: &str,
        force: bool,
        now: Timestamp,
    ) -> Result<Value, Refused> {
        self.check_kind(config)?;
        let empty = self.empty();
        let live = live.unwrap_or(&empty);
        let managers = Managers::read(&live["metadata"]["managedFields"])
            .map_err(|why| Refused::Failed(format!("failed to decode managed fields: {why}")))?;
        let apply = |force| self.merge(live, config, managers.clone(), manager, force, now);
        let mut applied = apply(force);
        if manager == KUBECTL
            && let Err(Refused::Conflicts(conflicts)) = &applied
            && let Some(allowed) = self.taken_from_client_side_apply(live)
        {
            let left = conflicts.without(&allowed);
            applied = if left.is_empty() { apply(true) } else { Err(Refused::Conflicts(left)) };
        }
        let (mut new, managers) = applied?;
        if manager == KUBECTL {
            last_applied::refresh(&mut new, config);
        }
        set_managed_fields(&mut new, &managers);
        Ok(new)
    }

    /// Checks a configuration by `schema`, that of the request's version, where objects are kept in
    /// another form.
    ///
    /// # Errors
    /// When it is of another kind, or is not what that schema says.
    pub fn check_config(&self, config: &Value, schema: &Schema) -> Result<(), Refused> {
        self.check_kind(config)?;
        let typed = Typed::new(schema, Cow::Borrowed(config));
        typed.map(drop).map_err(|why| self.misfit(Role::Config, config, &why))
    }

    /// Whose entries a write starts from. A client may write them itself, but not through a
    /// subresource, and one that leaves them out or garbles them does not delete them.
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

    /// The managers after a write by `manager` that made `new` of `live`.
    fn track(
        &self,
        live: &Value,
        new: &Value,
        managers: Managers,
        manager: &str,
        now: Timestamp,
    ) -> Result<Managers, Refused> {
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
    ) -> Result<(Value, Managers), Refused> {
        if managers.is_empty() {
            let empty = self.empty();
            managers =
                self.track(&empty, live, managers, BEFORE_FIRST_APPLY, now).map_err(|why| {
                    let attempted = "failed to create manager for existing fields";
                    Refused::Failed(format!("{attempted}: {why}"))
                })?;
        }
        if config["metadata"].get("managedFields").is_some_and(|fields| !fields.is_null()) {
            return Err(Refused::BadRequest("metadata.managedFields must be nil".to_owned()));
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

    /// The fields that client-side apply set and that nobody has changed since.
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

    fn check_kind(&self, config: &Value) -> Result<(), Refused> {
        let text = |field: &str| config[field].as_str().unwrap_or_default();
        if text("apiVersion") == self.api_version && text("kind") == self.kind {
            return Ok(());
        }
        let given = group_version_kind(text("apiVersion"), text("kind"));
        Err(Refused::BadRequest(format!("invalid object type: {given}")))
    }

    fn typed<'t>(&'t self, role: Role, value: &'t Value) -> Result<Typed<'t>, Refused> {
        let schema = self.schemas.get(self.api_version).ok_or_else(|| {
            let kind = group_version_kind(self.api_version, self.kind);
            Refused::Failed(format!("no corresponding type for {kind}"))
        })?;
        let typed = match role {
            Role::Config => Typed::new(schema, Cow::Borrowed(value)),
            _ => Typed::with_duplicates(schema, Cow::Borrowed(value)),
        };
        typed.map_err(|why| self.misfit(role, value, &why))
    }

    fn misfit(&self, role: Role, value: &Value, why: &Mismatches) -> Refused {
        let kind = group_version_kind(self.api_version, self.kind);
        let text = |field: &str| value["metadata"][field].as_str().unwrap_or_default();
        let (attempted, end) = role.words();
        let (namespace, name) = (text("namespace"), text("name"));
        Refused::Failed(format!("{attempted} ({namespace}/{name}; {kind}){end}: {why}"))
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

/// `apps/v1, Kind=Deployment`; the core group is empty: `/v1, Kind=Secret`.
fn group_version_kind(api_version: &str, kind: &str) -> String {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    format!("{group}/{version}, Kind={kind}")
}

#[cfg(test)]
mod tests;
