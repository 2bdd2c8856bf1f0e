//! Settings of the box, as `/apis/box.tinbox.dev/v1alpha1/settings` reports them: the whole text of
//! `box.toml`. Secrets are hidden unless they are requested.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Text of the settings, and the changed keys that are in effect or wait for a restart.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SettingsReport {
    /// Text of the file `box.toml`.
    pub text: String,
    /// Checksum of the text. A change sends it in `If-Match` and fails if the text has changed.
    pub sum: String,
    /// Number of the revision; `None` if the settings were never changed through the box.
    pub revision: Option<u32>,
    /// Keys whose last change took effect immediately.
    pub live: Vec<String>,
    /// Keys whose values take effect at the next start of the box.
    pub restart: Vec<String>,
}

/// Revision of the settings in the history.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Revision {
    /// Number of the revision, counted from 1.
    pub number: u32,
    /// Time of writing; `None` if the file was changed while the box was off.
    pub at: Option<Timestamp>,
    /// User or interface that wrote the revision.
    pub actor: String,
    /// Note of the author, such as the reason of the change; may be empty.
    pub note: String,
    /// Checksum of the revision's text.
    pub sum: String,
    /// True for the revision on the boot volume.
    pub current: bool,
}

/// Change of some keys; all other keys keep their values.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct SettingsChange {
    /// Values by key, such as `time.zone` or `network[1].mode`, in TOML or as bare text. `None`
    /// removes the key.
    pub set: BTreeMap<String, Option<String>>,
    /// Note that is stored in the history; may be empty.
    pub note: String,
}

/// Request to restore an older revision.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RevertRequest {
    /// Number of the revision to restore.
    pub revision: u32,
    /// Note that is stored in the history; may be empty.
    #[serde(default)]
    pub note: String,
}

/// Difference between two revisions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Diff {
    /// Difference in the format of `diff -u`; empty if the revisions are equal.
    pub text: String,
}
