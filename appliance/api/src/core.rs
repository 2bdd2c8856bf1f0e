//! Kinds of Kubernetes' core and RBAC groups that the box itself reads or writes.

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
/// Resource of the kind ConfigMap (`v1`).
pub const CONFIG_MAP: Resource =
    Resource { group: "", version: "v1", kind: "ConfigMap", plural: "configmaps" };
/// Resource of the kind Namespace (`v1`).
pub const NAMESPACE: Resource =
    Resource { group: "", version: "v1", kind: "Namespace", plural: "namespaces" };
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

/// Secret (`v1`) with the fields that controllers read.
#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Secret {
    /// Name, labels and other metadata.
    pub metadata: ObjectMeta,
    /// Values in base64, by key.
    pub data: BTreeMap<String, String>,
}

impl Secret {
    /// Returns the decoded values by key. A value that is not base64 is absent.
    pub fn bytes(&self) -> BTreeMap<String, Vec<u8>> {
        let decode = |text: &String| base64::engine::general_purpose::STANDARD.decode(text).ok();
        self.data.iter().filter_map(|(key, text)| Some((key.clone(), decode(text)?))).collect()
    }

    /// Returns the decoded text of `key`; `None` if the key is absent, not base64 or not UTF-8.
    pub fn text(&self, key: &str) -> Option<stdx::Secret> {
        let bytes = base64::engine::general_purpose::STANDARD.decode(self.data.get(key)?).ok()?;
        String::from_utf8(bytes).ok().map(stdx::Secret::from)
    }
}

/// Event about an object, from which a core/v1 Event is created.
#[derive(Debug, Clone, PartialEq)]
pub struct ObjectEvent {
    /// Kind of the object that the event is about.
    pub about: Resource,
    /// Namespace of the object.
    pub namespace: String,
    /// Name of the object.
    pub name: String,
    /// UID of the object; empty when unknown.
    pub uid: String,
    /// Machine-readable reason in upper camel case; its spelling never changes.
    pub reason: String,
    /// Description of the event for a person, one sentence.
    pub message: String,
    /// True for an Event of type `Warning`, false for type `Normal`.
    pub warning: bool,
    /// Part of the box that reports the event.
    pub component: String,
    /// Time of the event.
    pub at: jiff::Timestamp,
}

impl ObjectEvent {
    /// Returns the name of the Event: `<object>.<suffix>`.
    pub fn event_name(&self, suffix: &str) -> String {
        format!("{}.{suffix}", self.name)
    }

    /// Returns the core/v1 Event to create, named `<object>.<suffix>`.
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
