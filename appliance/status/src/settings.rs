//! Settings of the box, as `/apis/box.tinbox.dev/v1alpha1/settings` reports them: the whole text of
//! `box.toml`. Secrets are hidden unless they are requested.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The settings as they are written, and what the box already does of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SettingsReport {
    /// Text of the file.
    pub text: String,
    /// Its sum: a change names the one that it was made from, in `If-Match`.
    pub sum: String,
    /// Number of the revision; `None` if the settings were never changed through the box.
    pub revision: Option<u32>,
    /// Keys whose last change took effect immediately.
    pub live: Vec<String>,
    /// Keys whose values the running box does not follow yet: it takes them at its next start.
    pub restart: Vec<String>,
}

/// A revision of the settings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Revision {
    /// Its number, counted from 1.
    pub number: u32,
    /// Time of writing; `None` if it was written while the box was off.
    pub at: Option<Timestamp>,
    /// User or interface that wrote it.
    pub actor: String,
    /// Note of the author; may be empty.
    pub note: String,
    /// The sum of its text.
    pub sum: String,
    /// True for the revision on the boot volume.
    pub current: bool,
}

/// Some keys to change, and no others.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct SettingsChange {
    /// By key, `time.zone` or `network[1].mode`: the value, in TOML or as a bare text; `None` takes
    /// the key away.
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
    /// As `diff -u` writes it; empty when nothing does.
    pub text: String,
}
