//! Presets: the requests of a kind of plug, as data.

use std::collections::BTreeMap;

use serde::Deserialize;

/// Presets by name. Sources: the documentation of the makers, see each file.
pub const PRESETS: [(&str, &str); 4] = [
    ("esphome", include_str!("../../presets/esphome.json")),
    ("shelly", include_str!("../../presets/shelly.json")),
    ("shelly-gen1", include_str!("../../presets/shelly-gen1.json")),
    ("tasmota", include_str!("../../presets/tasmota.json")),
];

/// Login that a kind of plug supports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Authentication {
    /// No header, because the plug has no accounts.
    #[default]
    None,
    /// HTTP Basic (RFC 7617).
    Basic,
    /// HTTP Digest with MD5 or SHA-256.
    Digest,
    /// The password as a bearer token.
    Bearer,
}

/// Requests of a kind of plug.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Preset {
    /// Origin of the requests, as a URL or a file of the firmware.
    #[serde(default)]
    pub source: String,
    /// Outlet that `{outlet}` stands for by default.
    #[serde(default)]
    pub outlet: String,
    /// Login that the plug requires if it has a password.
    #[serde(default)]
    pub authentication: Authentication,
    /// Request to switch the outlet on.
    pub on: PlugRequest,
    /// Request to switch the outlet off.
    pub off: PlugRequest,
    /// Request to switch the outlet off, and on after `{pause}` seconds.
    #[serde(default)]
    pub cycle: Option<PlugRequest>,
    /// Request for the state.
    pub state: PlugState,
}

/// Request with placeholders such as `{outlet}` in its path and body.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlugRequest {
    /// HTTP method; GET by default.
    #[serde(default = "get")]
    pub method: String,
    /// Path with its query.
    pub path: String,
    /// Values of headers by name.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Body; empty by default.
    #[serde(default)]
    pub body: String,
}

/// Request for the state, and where the state is in the response.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlugState {
    /// Request that reads the state.
    #[serde(flatten)]
    pub request: PlugRequest,
    /// JSON pointer (RFC 6901) of the state in the response; empty for the whole response as text.
    #[serde(default)]
    pub pointer: String,
    /// Regular expression that the state of an outlet has while it is on.
    #[serde(default = "on")]
    pub on: String,
    /// Regular expression that the state of an outlet has while it is off.
    #[serde(default = "off")]
    pub off: String,
    /// JSON pointer of the power in watts; empty for a plug without a meter.
    #[serde(default)]
    pub watts: String,
}

fn get() -> String {
    "GET".to_owned()
}

fn on() -> String {
    "(?i)^(on|true|1)$".to_owned()
}

fn off() -> String {
    "(?i)^(off|false|0)$".to_owned()
}

impl Preset {
    /// Returns the preset of a name; `None` if there is none.
    pub fn named(name: &str) -> Option<Self> {
        let (_, text) = PRESETS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name))?;
        serde_json::from_str(text).ok()
    }
}
