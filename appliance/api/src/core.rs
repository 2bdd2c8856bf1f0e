//! The kinds of the core group that the box reads or writes itself.

use std::collections::BTreeMap;

use base64::Engine as _;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::meta::{ObjectMeta, Resource};

/// `v1` Secrets.
pub const SECRET: Resource =
    Resource { group: "", version: "v1", kind: "Secret", plural: "secrets" };
/// `v1` Events.
pub const EVENT: Resource = Resource { group: "", version: "v1", kind: "Event", plural: "events" };

/// `v1` ServiceAccounts.
pub const SERVICE_ACCOUNT: Resource =
    Resource { group: "", version: "v1", kind: "ServiceAccount", plural: "serviceaccounts" };
/// `rbac.authorization.k8s.io/v1` ClusterRoleBindings.
pub const CLUSTER_ROLE_BINDING: Resource = Resource {
    group: "rbac.authorization.k8s.io",
    version: "v1",
    kind: "ClusterRoleBinding",
    plural: "clusterrolebindings",
};

/// A Secret as far as controllers read it.
#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Secret {
    /// Metadata.
    pub metadata: ObjectMeta,
    /// Values in base64, by key.
    pub data: BTreeMap<String, String>,
}

impl Secret {
    /// The decoded text under `key`; `None` when absent, not base64 or not UTF-8.
    pub fn text(&self, key: &str) -> Option<stdx::Secret> {
        let bytes = base64::engine::general_purpose::STANDARD.decode(self.data.get(key)?).ok()?;
        String::from_utf8(bytes).ok().map(stdx::Secret::from)
    }
}

/// One thing that happened to an object, before it becomes a core/v1 Event.
#[derive(Debug, Clone, PartialEq)]
pub struct Happening {
    /// Kind of the object it happened to.
    pub about: Resource,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid, when known.
    pub uid: String,
    /// Upper camel case, stable: what a program matches on.
    pub reason: String,
    /// One sentence for a person.
    pub message: String,
    /// Something somebody should look at.
    pub warning: bool,
    /// Which part of the box saw it.
    pub component: String,
    /// When.
    pub at: jiff::Timestamp,
}

impl Happening {
    /// The name of its Event: the object's and a `suffix`.
    pub fn event_name(&self, suffix: &str) -> String {
        format!("{}.{suffix}", self.name)
    }

    /// The core/v1 Event to create, named `<object>.<suffix>`.
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
