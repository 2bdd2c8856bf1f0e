//! Kinds of the core group that the box itself reads or writes.

use std::collections::BTreeMap;

use base64::Engine as _;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::meta::{ObjectMeta, Resource};

/// Resource of the kind Secret (`v1`).
pub const SECRET: Resource =
    Resource { group: "", version: "v1", kind: "Secret", plural: "secrets" };
/// Resource of the kind Event (`v1`).
pub const EVENT: Resource = Resource { group: "", version: "v1", kind: "Event", plural: "events" };

/// Resource of the kind ServiceAccount (`v1`).
pub const SERVICE_ACCOUNT: Resource =
    Resource { group: "", version: "v1", kind: "ServiceAccount", plural: "serviceaccounts" };
/// Resource of the kind ClusterRoleBinding (`rbac.authorization.k8s.io/v1`).
pub const CLUSTER_ROLE_BINDING: Resource = Resource {
    group: "rbac.authorization.k8s.io",
    version: "v1",
    kind: "ClusterRoleBinding",
    plural: "clusterrolebindings",
};

/// Secret with the fields that controllers read.
#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Secret {
    /// Name, labels and other metadata.
    pub metadata: ObjectMeta,
    /// Values in base64, by key.
    pub data: BTreeMap<String, String>,
}

impl Secret {
    /// Decoded text of `key`; `None` when absent, not base64 or not UTF-8.
    pub fn text(&self, key: &str) -> Option<stdx::Secret> {
        let bytes = base64::engine::general_purpose::STANDARD.decode(self.data.get(key)?).ok()?;
        String::from_utf8(bytes).ok().map(stdx::Secret::from)
    }
}

/// Event of an object, before it becomes a core/v1 Event.
#[derive(Debug, Clone, PartialEq)]
pub struct ObjectEvent {
    /// Kind of the object of the event.
    pub about: Resource,
    /// Namespace of the object.
    pub namespace: String,
    /// Name of the object.
    pub name: String,
    /// UID of the object; empty when unknown.
    pub uid: String,
    /// Stable code in upper camel case, for programs.
    pub reason: String,
    /// One sentence for a person.
    pub message: String,
    /// True if a person should look into the event.
    pub warning: bool,
    /// Part of the box that reports the event.
    pub component: String,
    /// Time of the event.
    pub at: jiff::Timestamp,
}

impl ObjectEvent {
    /// Name of the Event: the object's name and a `suffix`.
    pub fn event_name(&self, suffix: &str) -> String {
        format!("{}.{suffix}", self.name)
    }

    /// Event (core/v1) to create, named `<object>.<suffix>`.
    pub fn to_event(&self, suffix: &str) -> Value {
        let at = self.at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let exact = self.at.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string();
        json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": { "name": self.event_name(suffix), "namespace": self.namespace },
            "involvedObject": {
                "apiVersion": self.about.api_version(),
                "kind": self.about.kind,
                "namespace": self.namespace,
                "name": self.name,
                "uid": self.uid,
            },
            "reason": self.reason,
            "message": self.message,
            "type": if self.warning { "Warning" } else { "Normal" },
            "source": { "component": self.component },
            "reportingComponent": self.component,
            "reportingInstance": "tinbox",
            "eventTime": exact,
            "firstTimestamp": at,
            "lastTimestamp": at,
            "count": 1,
        })
    }
}
