//! Entries of `metadata.managedFields` (apimachinery, `util/managedfields/internal`:
//! `managedfields.go`, `capmanagers.go`).

use std::collections::BTreeMap;
use std::collections::btree_map::Values;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::set::{Set, UnreadableSet};
use go_text::json_iterator::push_json_text;

/// Maximum number of entries of one object. Reading an object with more entries is an error.
pub const MAX_ENTRIES: usize = 1000;
/// Maximum number of separate entries of writes other than an apply; the oldest entries are merged.
pub const MAX_UPDATE_MANAGERS: usize = 10;

/// Manager of the merged entry of the oldest writes.
const ANCIENT: &str = "ancient-changes";
const FIELDS_TYPE: &str = "FieldsV1";

/// Operation that made a manager the owner of its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// Server-side apply with the manager's configuration.
    Apply,
    /// Any write other than server-side apply.
    Update,
}

impl Operation {
    fn word(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

/// Manager with the fields that it owns.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub manager: String,
    pub operation: Operation,
    /// API version of the object in the manager's last write; defines the field names of the set.
    pub api_version: String,
    /// Subresource; empty for the object itself.
    pub subresource: String,
    /// Time of the manager's last change; `None` if unknown.
    pub time: Option<Timestamp>,
    pub set: Set,
}

impl Entry {
    /// Returns the key of the entry. An apply keeps its entry across versions; other writes have
    /// one entry for each version. The text equals upstream's, because upstream sorts by it.
    pub(crate) fn identifier(&self) -> String {
        let api_version = match self.operation {
            Operation::Apply => "",
            Operation::Update => self.api_version.as_str(),
        };
        let mut text = String::from("{");
        let operation = self.operation.word();
        for (key, value) in [
            ("manager", self.manager.as_str()),
            ("operation", operation),
            ("apiVersion", api_version),
            ("subresource", self.subresource.as_str()),
        ] {
            if value.is_empty() {
                continue;
            }
            if text.len() > 1 {
                text.push(',');
            }
            push_json_text(&mut text, key, true);
            text.push(':');
            push_json_text(&mut text, value, true);
        }
        text.push('}');
        text
    }

    fn to_value(&self) -> Value {
        let mut entry = Map::new();
        if !self.manager.is_empty() {
            entry.insert("manager".to_owned(), json!(self.manager));
        }
        entry.insert("operation".to_owned(), json!(self.operation.word()));
        entry.insert("apiVersion".to_owned(), json!(self.api_version));
        if let Some(time) = self.time {
            entry.insert("time".to_owned(), json!(time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()));
        }
        entry.insert("fieldsType".to_owned(), json!(FIELDS_TYPE));
        entry.insert("fieldsV1".to_owned(), self.set.to_fields_v1());
        if !self.subresource.is_empty() {
            entry.insert("subresource".to_owned(), json!(self.subresource));
        }
        Value::Object(entry)
    }

    fn seconds(&self) -> i64 {
        self.time.map_or(0, Timestamp::as_second)
    }
}

/// Error of a `metadata.managedFields` that cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnreadableManagers {
    /// The value is not an array of objects.
    #[error("managedFields must be an array of objects")]
    NoEntries,
    /// The object has more than [`MAX_ENTRIES`] entries.
    #[error("managedFields has more than {MAX_ENTRIES} entries")]
    TooMany,
    /// A field of an entry is invalid.
    #[error("{0}")]
    Entry(String),
    /// The `fieldsV1` of an entry cannot be parsed.
    #[error("error decoding the fields of entry {at}: {source}")]
    Fields {
        /// Index of the entry, from 0.
        at: usize,
        /// Reason from the parser of the set.
        source: UnreadableSet,
    },
}

/// All managers of the fields of one object.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Managers {
    /// Entries by [`Entry::identifier`], or by [`crate::updater::CURRENT`] while a write is in
    /// progress.
    pub(crate) entries: BTreeMap<String, Entry>,
}

impl Managers {
    /// Parses `metadata.managedFields`; null or a missing value means no managers.
    ///
    /// # Errors
    /// The value is not an array, has too many entries, or an entry is invalid.
    pub fn read(managed_fields: &Value) -> Result<Self, UnreadableManagers> {
        let entries = match managed_fields {
            Value::Null => return Ok(Self::default()),
            Value::Array(entries) if entries.len() <= MAX_ENTRIES => entries,
            Value::Array(_) => return Err(UnreadableManagers::TooMany),
            _ => return Err(UnreadableManagers::NoEntries),
        };
        let mut managers = Self::default();
        for (at, entry) in entries.iter().enumerate() {
            let entry = read_entry(at, entry)?;
            managers.entries.insert(entry.identifier(), entry);
        }
        Ok(managers)
    }

    /// Returns true if a client requests to remove every manager: the value is `[]` or `[{}]`.
    pub fn is_reset(managed_fields: &Value) -> bool {
        match managed_fields.as_array().map(Vec::as_slice) {
            Some([]) => true,
            Some([only]) => only.as_object().is_some_and(Map::is_empty),
            _ => false,
        }
    }

    /// Returns the value of `metadata.managedFields`: entries of applies first, then by time,
    /// manager, version and subresource. Returns `None` if no field has an owner.
    pub fn write(&self) -> Option<Value> {
        let mut entries: Vec<_> = self.entries.values().collect();
        entries.sort_by(|one, other| {
            let by = |entry: &Entry| (entry.operation, entry.seconds());
            by(one)
                .cmp(&by(other))
                .then_with(|| one.manager.cmp(&other.manager))
                .then_with(|| one.api_version.cmp(&other.api_version))
                .then_with(|| one.subresource.cmp(&other.subresource))
        });
        let written: Vec<_> = entries.into_iter().map(Entry::to_value).collect();
        (!written.is_empty()).then_some(Value::Array(written))
    }

    /// Returns true if no field has an owner.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the fields that `manager` owns by `operation`, in all versions and subresources.
    pub fn owned(&self, manager: &str, operation: Operation) -> Set {
        let mut owned = Set::default();
        for entry in self.values() {
            if entry.manager == manager && entry.operation == operation {
                owned.extend(&entry.set);
            }
        }
        owned
    }

    pub(crate) fn values(&self) -> Values<'_, String, Entry> {
        self.entries.values()
    }

    /// Merges the oldest entries of each version, until at most [`MAX_UPDATE_MANAGERS`] entries of
    /// writes other than an apply remain.
    pub(crate) fn cap(&mut self) {
        let is_update = |(_, entry): &(&String, &Entry)| entry.operation == Operation::Update;
        let mut updaters: Vec<_> = self
            .entries
            .iter()
            .filter(is_update)
            .map(|(id, entry)| (entry.seconds(), id.clone()))
            .collect();
        let mut left = updaters.len();
        updaters.sort();
        let mut firsts: BTreeMap<String, String> = BTreeMap::new();
        for (_, id) in updaters {
            if left <= MAX_UPDATE_MANAGERS {
                return;
            }
            let Some(version) = self.entries.get(&id).map(|entry| entry.api_version.clone()) else {
                continue;
            };
            let Some(first) = firsts.get(&version) else {
                firsts.insert(version, id);
                continue;
            };
            let bucket = Entry {
                manager: ANCIENT.to_owned(),
                operation: Operation::Update,
                api_version: version,
                subresource: String::new(),
                time: None,
                set: Set::default(),
            };
            let bucket_id = bucket.identifier();
            // Upstream would lose the bucket here if the bucket is newer than the entry that goes
            // into it.
            if id == bucket_id {
                continue;
            }
            if !self.entries.contains_key(&bucket_id) {
                let set = self.entries.remove(first).map(|entry| entry.set).unwrap_or_default();
                self.entries.insert(bucket_id.clone(), Entry { set, ..bucket });
            }
            let merged = self.entries.remove(&id);
            if let (Some(merged), Some(bucket)) = (merged, self.entries.get_mut(&bucket_id)) {
                bucket.set.extend(&merged.set);
                bucket.time = merged.time;
            }
            left -= 1;
        }
    }
}

fn read_entry(at: usize, entry: &Value) -> Result<Entry, UnreadableManagers> {
    let wrong = |why: String| UnreadableManagers::Entry(why);
    let Value::Object(fields) = entry else { return Err(UnreadableManagers::NoEntries) };
    let text = |name: &str| match fields.get(name) {
        None | Some(Value::Null) => Ok(""),
        Some(Value::String(text)) => Ok(text.as_str()),
        Some(_) => Err(wrong(format!("{name} in managed fields entry {at} must be a string"))),
    };
    let operation = match text("operation")? {
        "Apply" => Operation::Apply,
        "Update" => Operation::Update,
        _ => return Err(wrong("operation must be `Apply` or `Update`".to_owned())),
    };
    let api_version = text("apiVersion")?;
    if api_version.is_empty() {
        return Err(wrong("apiVersion must not be empty".to_owned()));
    }
    match text("fieldsType")? {
        FIELDS_TYPE => {}
        "" => return Err(wrong(format!("missing fieldsType in managed fields entry {at}"))),
        other => {
            let why = format!("invalid fieldsType {other:?} in managed fields entry {at}");
            return Err(wrong(why));
        }
    }
    let time = match text("time")? {
        "" => None,
        text => Some(text.parse().map_err(|_| {
            wrong(format!("time in managed fields entry {at} is not an RFC 3339 time"))
        })?),
    };
    let set = Set::from_fields_v1(fields.get("fieldsV1").unwrap_or(&Value::Null))
        .map_err(|source| UnreadableManagers::Fields { at, source })?;
    Ok(Entry {
        manager: text("manager")?.to_owned(),
        operation,
        api_version: api_version.to_owned(),
        subresource: text("subresource")?.to_owned(),
        time,
        set,
    })
}

#[cfg(test)]
mod tests;
