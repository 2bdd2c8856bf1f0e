//! `APIGroupDiscoveryList`: every group, version and resource in one document.

use serde_json::{Value, json};

use resources::served::{Group, GroupVersion, Kind, Resource};

/// API version of the `APIGroupDiscoveryList` document; both versions have the same fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    V2,
    V2Beta1,
}

impl Version {
    /// Parses the version in the Accept header; `None` for an unknown version.
    pub(super) fn named(word: &str) -> Option<Self> {
        match word {
            "v2" => Some(Self::V2),
            "v2beta1" => Some(Self::V2Beta1),
            _ => None,
        }
    }

    /// Returns the `Content-Type` of the document.
    pub(super) fn content_type(self) -> &'static str {
        match self {
            Self::V2 => "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
            Self::V2Beta1 => {
                "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
            }
        }
    }

    fn api_version(self) -> &'static str {
        match self {
            Self::V2 => "apidiscovery.k8s.io/v2",
            Self::V2Beta1 => "apidiscovery.k8s.io/v2beta1",
        }
    }
}

/// Returns the aggregated document for `/api` if `core` is true, otherwise for `/apis`.
pub(super) fn document(groups: &[Group<'_>], core: bool, version: Version) -> Value {
    let items = groups.iter().filter(|group| group.name.is_empty() == core).map(item);
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": version.api_version(),
        "metadata": {},
        "items": items.collect::<Vec<_>>(),
    })
}

fn item(group: &Group<'_>) -> Value {
    let metadata = match group.name {
        "" => json!({}),
        name => json!({ "name": name }),
    };
    let versions: Vec<Value> = group.versions.iter().map(of_version).collect();
    json!({ "metadata": metadata, "versions": versions })
}

fn of_version(version: &GroupVersion<'_>) -> Value {
    json!({
        "version": version.name,
        "resources": version.resources.iter().map(resource).collect::<Vec<_>>(),
        "freshness": "Current",
    })
}

fn resource(resource: &Resource<'_>) -> Value {
    let mut entry = json!({
        "resource": resource.name,
        "responseKind": response_kind(resource.kind),
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": resource.singular,
        "verbs": resource.verbs,
    });
    if !resource.short_names.is_empty() {
        entry["shortNames"] = json!(resource.short_names);
    }
    if !resource.categories.is_empty() {
        entry["categories"] = json!(resource.categories);
    }
    if !resource.parts.is_empty() {
        entry["subresources"] = resource.parts.iter().map(part).collect();
    }
    entry
}

fn part(part: &Resource<'_>) -> Value {
    json!({
        "subresource": part.name,
        "responseKind": response_kind(part.kind),
        "verbs": part.verbs,
    })
}

fn response_kind(kind: Kind<'_>) -> Value {
    let (group, version) = if kind.qualified { (kind.group, kind.version) } else { ("", "") };
    json!({ "group": group, "version": version, "kind": kind.name })
}
