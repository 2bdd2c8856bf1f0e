//! Settings of the box, as `/apis/box.tinbox.dev/v1alpha1/settings` reports them: the whole text of
//! `box.toml`. Secrets are hidden unless they are requested.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Settings as they are written, and the keys that already have an effect.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SettingsReport {
    /// Text of the file.
    pub text: String,
    /// Checksum of the text. A change names the checksum that it is based on in `If-Match`.
    pub sum: String,
    /// Number of the revision; `None` if the settings were never changed through the box.
    pub revision: Option<u32>,
    /// Keys whose last change took effect immediately.
    pub live: Vec<String>,
    /// Keys whose values take effect at the next start of the box.
    pub restart: Vec<String>,
}

/// A revision of the settings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Revision {
    /// Number of the revision, counted from 1.
    pub number: u32,
    /// Time of writing; `None` if it was written while the box was off.
    pub at: Option<Timestamp>,
    /// User or interface that wrote it.
    pub actor: String,
    /// Note of the author; may be empty.
    pub note: String,
    /// Checksum of the revision's text.
    pub sum: String,
    /// True for the revision on the boot volume.
    pub current: bool,
}

/// Changes of some keys; other keys stay.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct SettingsChange {
    /// Values by key, such as `time.zone` or `network[1].mode`, in TOML or as bare text. `None`
    /// removes the key.
    pub set: BTreeMap<String, Option<String>>,
    /// Note for the history.
    pub note: String,
}

/// A request to restore an older revision.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RevertRequest {
    /// Number of the revision.
    pub revision: u32,
    /// Note for the history.
    #[serde(default)]
    pub note: String,
}

/// Difference between two revisions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Diff {
    /// Difference in the format of `diff -u`; empty without a difference.
    pub text: String,
}
