//! Field ownership: updates `metadata.managedFields` on every write, and merges an apply into an
//! object (`structured-merge` has the rules).

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;
use structured_merge::{ApplyError, FieldManager, Path, Schema, Set};

use super::fields;
use crate::definition::{Registry, ResourceDefinition};
use crate::engine::{Part, Place, WriteOptions};
use crate::object::metadata_mut;
use crate::status_error::{Cause, Reason, StatusError};
use schema::FieldError;

/// Field manager of the box's own writes.
pub const BOX_MANAGER: &str = "tinbox";
/// Maximum bytes of a field manager's name (Kubernetes' limit).
pub const MAX_MANAGER: usize = 128;
/// Maximum bytes of a subresource's name in a `managedFields` entry (Kubernetes' limit).
const MAX_SUBRESOURCE: usize = 256;

/// Data of one write for the update of field ownership (`managedFields`).
pub(in crate::engine) struct Ownership {
    api_version: String,
    kind: String,
    subresource: &'static str,
    /// Merge rules of the stored fields, by `apiVersion` of each served version.
    schemas: BTreeMap<String, Arc<Schema>>,
    /// Merge rules of the request's version; `None` if its fields are the stored fields.
    request: Option<Arc<Schema>>,
    definition: Arc<ResourceDefinition>,
    reset: Set,
    manager: String,
    now: Timestamp,
}

impl Ownership {
    /// Makes the data for a write at `place`; `registry` has all versions of the resource.
    pub(in crate::engine) fn of(
        registry: &Registry,
        place: &Place,
        options: &WriteOptions,
        now: Timestamp,
    ) -> Self {
        let definition = place.definition.as_ref();
        let same = registry
            .all()
            .iter()
            .filter(|one| (&one.group, &one.plural) == (&definition.group, &definition.plural));
        let mut schemas: BTreeMap<_, _> =
            same.map(|one| (one.api_version(), one.stored_merge_schema())).collect();
        // The box itself can write a version that is not served.
        let own = || definition.stored_merge_schema();
        schemas.entry(definition.api_version()).or_insert_with(own);
        let (subresource, reset) = match options.part {
            Part::Main if definition.status_subresource || definition.is_namespace => {
                ("", Some("status"))
            }
            Part::Main => ("", None),
            Part::Status => ("status", Some("spec")),
            Part::Finalize => ("finalize", None),
        };
        Self {
            api_version: definition.api_version(),
            kind: definition.kind.clone(),
            subresource: options.subresource.unwrap_or(subresource),
            schemas,
            request: definition.other_form().map(|_| definition.merge_schema()),
            definition: Arc::clone(&place.definition),
            reset: Set::of(reset.map(|name| Path::fields(&[name]))),
            manager: options.manager.as_deref().unwrap_or(BOX_MANAGER).to_owned(),
            now,
        }
    }

    fn rules(&self) -> FieldManager<'_> {
        FieldManager {
            api_version: &self.api_version,
            kind: &self.kind,
            subresource: self.subresource,
            schemas: &self.schemas,
            reset: &self.reset,
        }
    }

    /// Updates field ownership in `new` after a write other than an apply.
    pub(in crate::engine) fn track(&self, old: Option<&Value>, new: &mut Value) {
        if let Err(why) = self.rules().update(old, new, &self.manager, self.now) {
            // The write itself is valid; only its ownership cannot be computed. Upstream does the
            // same.
            let (kind, why) = (&self.kind, Excerpt(&why));
            tracing::warn!(kind, %why, "dropping the field managers of an object");
        }
        if let Some(old) = old {
            keep_times(old, new);
        }
    }

    /// Merges the apply configuration `config` into `old` (`None` for a new object).
    pub(in crate::engine) fn apply(
        &self,
        old: Option<&Value>,
        config: &Value,
        force: bool,
    ) -> Result<Value, StatusError> {
        let rules = self.rules();
        let mut stored = None;
        if let Some(request) = &self.request {
            rules.check_config(config, request).map_err(refusal)?;
            let mut config = config.clone();
            fields::prune_unstored(&self.definition, &mut config);
            stored = Some(config);
        }
        let config = stored.as_ref().unwrap_or(config);
        rules.apply(old, config, &self.manager, force, self.now).map_err(refusal)
    }
}

/// Log form of an apply error, without the values of the object, which may be secret.
struct Excerpt<'a>(&'a ApplyError);

impl std::fmt::Display for Excerpt<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = self.0.to_string();
        let end = text.find(" got ").unwrap_or(text.len());
        f.write_str(text.get(..end).unwrap_or_default())
    }
}

fn refusal(refused: ApplyError) -> StatusError {
    let message = refused.to_string();
    match refused {
        ApplyError::Conflicts(conflicts) => {
            let mut error = StatusError::new(Reason::Conflict, message);
            error.details.causes = conflicts
                .listed()
                .into_iter()
                .map(|conflict| Cause {
                    reason: "FieldManagerConflict",
                    message: conflict.message(),
                    field: conflict.field,
                })
                .collect();
            error
        }
        ApplyError::BadRequest(_) => StatusError::bad_request(message),
        ApplyError::Failed(_) => StatusError::new(Reason::Unknown, message),
    }
}

/// Sets `managedFields` of `new` to `managed`, the result of an apply.
pub(in crate::engine) fn replace(old: &Value, new: &mut Value, managed: Value) {
    let metadata = metadata_mut(new);
    if managed.is_null() {
        metadata.remove("managedFields");
    } else {
        metadata.insert("managedFields".to_owned(), managed);
    }
    keep_times(old, new);
}

/// Restores `managedFields` of `old` if a write changed only its times, and thus has no effect.
fn keep_times(old: &Value, new: &mut Value) {
    let entries = |object: &Value| object["metadata"]["managedFields"].as_array().cloned();
    let (Some(before), Some(after)) = (entries(old), entries(new)) else { return };
    let timeless = |entries: &[Value]| -> Vec<Value> {
        let mut entries = entries.to_vec();
        for entry in entries.iter_mut().filter_map(Value::as_object_mut) {
            entry.remove("time");
        }
        entries
    };
    if before == after || timeless(&before) != timeless(&after) || !same_beside(old, new) {
        return;
    }
    metadata_mut(new).insert("managedFields".to_owned(), Value::Array(before));
}

/// Returns true if two objects are equal except for `managedFields`.
fn same_beside(one: &Value, other: &Value) -> bool {
    let differs = |one: &Value, other: &Value, skipped: &str| {
        let fields = |value: &Value| value.as_object().map_or(0, serde_json::Map::len);
        let mut all = one.as_object().into_iter().flatten();
        fields(one) != fields(other)
            || all.any(|(name, value)| name != skipped && other.get(name) != Some(value))
    };
    !differs(one, other, "metadata")
        && !differs(&one["metadata"], &other["metadata"], "managedFields")
}

/// Checks `managedFields` that a client sends (apimachinery
/// `meta/v1/validation.ValidateManagedFields`).
pub(in crate::engine) fn check(object: &Value, errors: &mut Vec<FieldError>) {
    let entries = object["metadata"]["managedFields"].as_array();
    for (at, entry) in entries.into_iter().flatten().enumerate() {
        let field = |name: &str| format!("metadata.managedFields[{at}].{name}");
        let text = |name: &str| entry[name].as_str().unwrap_or_default();
        let manager = text("manager");
        if manager.len() > MAX_MANAGER {
            errors.push(FieldError::too_long(field("manager"), MAX_MANAGER));
        }
        if let Some((at, letter)) = manager.char_indices().find(|(_, one)| one.is_control()) {
            let code = u32::from(letter);
            let why = format!("invalid character U+{code:04X} (at position {at})");
            errors.push(FieldError::invalid(field("manager"), &entry["manager"], why));
        }
        if text("subresource").len() > MAX_SUBRESOURCE {
            errors.push(FieldError::too_long(field("subresource"), MAX_SUBRESOURCE));
        }
    }
}

/// Returns the default field manager of a client: its user agent up to the first slash, printable
/// characters only (apiserver `pkg/endpoints/handlers/create.go`).
pub fn manager_of(user_agent: &str) -> String {
    let mut name = String::new();
    let product = user_agent.split('/').next().unwrap_or_default();
    for letter in product.chars().filter(|letter| !letter.is_control()) {
        if name.len() + letter.len_utf8() > MAX_MANAGER {
            break;
        }
        name.push(letter);
    }
    name
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{keep_times, manager_of};

    fn object(spec: u8, time: &str) -> Value {
        let entry = json!({ "manager": "m", "time": time, "fieldsV1": { "f:spec": {} } });
        json!({ "metadata": { "name": "n", "managedFields": [entry] }, "spec": spec })
    }

    #[test]
    fn times_alone_are_no_change() {
        for (new, kept) in [(object(1, "b"), true), (object(2, "b"), false)] {
            let (old, mut tidied) = (object(1, "a"), new.clone());
            keep_times(&old, &mut tidied);
            assert_eq!(tidied, if kept { old } else { new });
        }
        let mut other = object(1, "b");
        other["metadata"]["managedFields"][0]["manager"] = json!("other");
        let mut tidied = other.clone();
        keep_times(&object(1, "a"), &mut tidied);
        assert_eq!(tidied, other);
    }

    #[test]
    fn clients_are_named_by_their_agent() {
        for (agent, name) in [
            ("kubectl/v1.33.0 (linux/amd64)", "kubectl"),
            ("curl", "curl"),
            ("", ""),
            ("a\u{7}b/1", "ab"),
        ] {
            assert_eq!(manager_of(agent), name);
        }
        assert_eq!(manager_of(&"é".repeat(100)).len(), 128);
    }
}
