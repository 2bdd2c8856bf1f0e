//! Ignored machines and dismissed notices. Both are entries of one ConfigMap, so that backups
//! contain them and `kubectl edit` changes them:
//!
//! ```text
//! default/dismissed
//!   machine.54-b2-03-a1-4c-01: ignored
//!   notice.backup: 2026-11-29T14:00:00Z
//! ```
//!
//! Never: removes an entry that this crate did not write, or decides what a dismissal hides.
//!
//! Enter at [`Dismissals`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::core::CONFIG_MAP;
use api::meta::ObjectKey;
use jiff::Timestamp;
pub use objects::ObjectError;
use objects::Objects;
use serde_json::{Map, Value, json};
use stdx::MacAddr;

/// Maximum number of ignored machines.
pub const MACHINES_MAX: usize = 500;
/// Maximum number of dismissed notices. A further one replaces the oldest.
pub const NOTICES_MAX: usize = 50;

/// Namespace and name of the ConfigMap.
const NAMESPACE: &str = "default";
const NAME: &str = "dismissed";
/// Prefixes of the entries.
const MACHINE: &str = "machine.";
const NOTICE: &str = "notice.";
/// Value of the entry of a machine.
const IGNORED: &str = "ignored";
/// Maximum attempts of a change that conflicts with changes by other clients.
const TRIES_MAX: usize = 4;

/// Machines and notices that a person has put aside.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dismissed {
    /// MAC addresses of the ignored machines.
    pub machines: BTreeSet<MacAddr>,
    /// Times of the dismissals, by the result of [`entry_of`] for the key of the notice.
    pub notices: BTreeMap<String, Timestamp>,
}

/// Reader and writer of the ConfigMap. Clones share the objects.
#[derive(Clone)]
pub struct Dismissals {
    objects: Arc<dyn Objects>,
}

impl Dismissals {
    /// Creates a reader and writer of the ConfigMap in `objects`.
    pub fn new(objects: Arc<dyn Objects>) -> Self {
        Self { objects }
    }

    /// Returns all entries. Entries that are not valid are left out.
    ///
    /// # Errors
    /// The ConfigMap exists, but cannot be read.
    pub async fn read(&self) -> Result<Dismissed, ObjectError> {
        match self.objects.get(CONFIG_MAP, &key()).await {
            Ok(object) => Ok(parsed(&object)),
            Err(ObjectError::NotFound(_)) => Ok(Dismissed::default()),
            Err(error) => Err(error),
        }
    }

    /// Returns true if a machine with one of these MAC addresses, in lower case, is ignored.
    ///
    /// # Errors
    /// The ConfigMap exists, but cannot be read.
    pub async fn ignores(&self, macs: &BTreeSet<String>) -> Result<bool, ObjectError> {
        let ignored = self.read().await?.machines;
        Ok(ignored.iter().any(|mac| macs.contains(&mac.to_string())))
    }

    /// Ignores machines.
    ///
    /// # Errors
    /// More than [`MACHINES_MAX`] machines would be ignored, or the ConfigMap cannot be written.
    /// Nothing is changed.
    pub async fn ignore(&self, machines: &[MacAddr]) -> Result<(), ObjectError> {
        self.change(|data| {
            let entry = |mac: &MacAddr| (machine_entry(*mac), IGNORED.into());
            data.extend(machines.iter().map(entry));
            let count = data.keys().filter(|entry| entry.starts_with(MACHINE)).count();
            if count > MACHINES_MAX {
                let why = format!("{count} machines would be ignored, the limit is {MACHINES_MAX}");
                return Err(ObjectError::Invalid(why));
            }
            Ok(())
        })
        .await
    }

    /// Ends the ignoring of a machine.
    ///
    /// # Errors
    /// The ConfigMap cannot be written.
    pub async fn show_again(&self, machine: MacAddr) -> Result<(), ObjectError> {
        self.change(|data| {
            data.remove(&machine_entry(machine));
            Ok(())
        })
        .await
    }

    /// Dismisses the notice with this key at the time `now`.
    ///
    /// # Errors
    /// The ConfigMap cannot be written.
    pub async fn dismiss(&self, notice: &str, now: Timestamp) -> Result<(), ObjectError> {
        self.change(|data| {
            data.insert(format!("{NOTICE}{}", entry_of(notice)), now.to_string().into());
            let mut all: Vec<(String, String)> = notices(data).collect();
            all.sort_by(|one, other| other.1.cmp(&one.1));
            for (entry, _) in all.into_iter().skip(NOTICES_MAX) {
                data.remove(&entry);
            }
            Ok(())
        })
        .await
    }

    /// Changes the entries, and repeats the change after a conflict with another client.
    async fn change(
        &self,
        edit: impl Fn(&mut Map<String, Value>) -> Result<(), ObjectError>,
    ) -> Result<(), ObjectError> {
        let mut tries = 1;
        loop {
            match self.change_once(&edit).await {
                Err(ObjectError::Conflict(_) | ObjectError::AlreadyExists(_))
                    if tries < TRIES_MAX =>
                {
                    tries += 1;
                }
                done => return done,
            }
        }
    }

    async fn change_once(
        &self,
        edit: &impl Fn(&mut Map<String, Value>) -> Result<(), ObjectError>,
    ) -> Result<(), ObjectError> {
        let (mut object, is_new) = match self.objects.get(CONFIG_MAP, &key()).await {
            Ok(object) => (object, false),
            Err(ObjectError::NotFound(_)) => (empty(), true),
            Err(error) => return Err(error),
        };
        let mut data = object["data"].as_object().cloned().unwrap_or_default();
        edit(&mut data)?;
        object["data"] = data.into();
        if is_new {
            self.objects.create(CONFIG_MAP, object).await.map(drop)
        } else {
            self.objects.update(CONFIG_MAP, object).await.map(drop)
        }
    }
}

fn key() -> ObjectKey {
    ObjectKey::new(NAMESPACE, NAME)
}

fn empty() -> Value {
    json!({
        "apiVersion": CONFIG_MAP.api_version(),
        "kind": CONFIG_MAP.kind,
        "metadata": { "name": NAME, "namespace": NAMESPACE },
        "data": {},
    })
}

/// Returns the entry of a machine. Keys of a ConfigMap may have no colon.
fn machine_entry(mac: MacAddr) -> String {
    format!("{MACHINE}{}", mac.to_string().replace(':', "-"))
}

/// Returns the key of a notice with the characters that a key of a ConfigMap may have.
pub fn entry_of(notice: &str) -> String {
    let permitted = |it: char| if it.is_ascii_alphanumeric() || it == '-' { it } else { '_' };
    notice.chars().take(200).map(permitted).collect()
}

fn notices(data: &Map<String, Value>) -> impl Iterator<Item = (String, String)> {
    let all = data.iter().filter(|(entry, _)| entry.starts_with(NOTICE));
    all.map(|(entry, at)| (entry.clone(), at.as_str().unwrap_or_default().to_owned()))
}

fn parsed(object: &Value) -> Dismissed {
    let mut dismissed = Dismissed::default();
    for (entry, value) in object["data"].as_object().into_iter().flatten() {
        if let Some(mac) = entry.strip_prefix(MACHINE) {
            dismissed.machines.extend(mac.replace('-', ":").parse::<MacAddr>());
        }
        let at = value.as_str().and_then(|at| at.parse::<Timestamp>().ok());
        if let (Some(notice), Some(at)) = (entry.strip_prefix(NOTICE), at) {
            dismissed.notices.insert(notice.to_owned(), at);
        }
    }
    dismissed
}

#[cfg(test)]
mod tests;
