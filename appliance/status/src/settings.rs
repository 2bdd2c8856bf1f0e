//! The box's settings as its API tells them: `/apis/box.tinbox.dev/v1alpha1/settings`. They are the
//! text of `box.toml`, whole; secrets in it are hidden unless somebody asks for them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The settings as they are written, and what the box already does of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Report {
    /// The file.
    pub text: String,
    /// Its sum: a change names the one that it was made from, in `If-Match`.
    pub sum: String,
    /// Which revision it is; `None` as long as nobody changed it through the box.
    pub revision: Option<u32>,
    /// What the last change did at once, by key.
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
    /// When it was written; `None`: while the box did not look.
    pub at: Option<Timestamp>,
    /// Who wrote it.
    pub actor: String,
    /// What they said about it; may be empty.
    pub note: String,
    /// The sum of its text.
    pub sum: String,
    /// It is the one that is written on the boot volume.
    pub current: bool,
}

/// Some keys to change, and no others.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Change {
    /// By key, `time.zone` or `network[1].mode`: the value, in TOML or as a bare text; `None` takes
    /// the key away.
    pub set: BTreeMap<String, Option<String>>,
    /// What is to be said about it.
    pub note: String,
}

/// Which revision to write again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Revert {
    /// Its number.
    pub revision: u32,
    /// What is to be said about it.
    #[serde(default)]
    pub note: String,
}

/// What differs between two revisions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Diff {
    /// As `diff -u` writes it; empty when nothing does.
    pub text: String,
}
