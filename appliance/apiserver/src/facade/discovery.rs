//! What is served, in the words of discovery: the legacy documents, which every client reads.

use serde_json::{Value, json};

use crate::definition::{Registry, ResourceDefinition};
use crate::status_error::StatusError;

/// The Kubernetes version whose API behaviour is followed; `+tinbox` says whose server it is.
const MAJOR: &str = "1";
const MINOR: &str = "34";

/// What can be done with every kind.
const VERBS: [&str; 8] =
    ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/// `/version`
pub fn version() -> Value {
    json!({
        "major": MAJOR,
        "minor": MINOR,
        "gitVersion": format!("v{MAJOR}.{MINOR}.0+tinbox.{}", env!("CARGO_PKG_VERSION")),
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "",
        "goVersion": "",
        "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, architecture()),
    })
}

/// The architecture by the name Go gives it, which is what clients expect here.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// `/api`
pub fn core_versions(registry: &Registry) -> Value {
    let mut versions: Vec<&str> = Vec::new();
    for definition in registry.all().iter().filter(|one| one.group.is_empty()) {
        if !versions.contains(&definition.version.as_str()) {
            versions.push(&definition.version);
        }
    }
    json!({
        "kind": "APIVersions",
        "versions": versions,
        "serverAddressByClientCIDRs": [],
    })
}

/// `/apis`
pub fn groups(registry: &Registry) -> Value {
    let mut names: Vec<&str> = Vec::new();
    for definition in registry.all().iter().filter(|one| !one.group.is_empty()) {
        if !names.contains(&definition.group.as_str()) {
            names.push(&definition.group);
        }
    }
    let groups: Vec<Value> = names.iter().map(|name| group_entry(registry, name)).collect();
    json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": groups })
}

/// `/apis/GROUP`
pub fn group(registry: &Registry, name: &str) -> Result<Value, StatusError> {
    if name.is_empty() || !registry.all().iter().any(|one| one.group == name) {
        return Err(StatusError::no_such_resource());
    }
    let mut entry = group_entry(registry, name);
    entry["kind"] = json!("APIGroup");
    entry["apiVersion"] = json!("v1");
    Ok(entry)
}

fn group_entry(registry: &Registry, name: &str) -> Value {
    let mut versions: Vec<Value> = Vec::new();
    for definition in registry.all().iter().filter(|one| one.group == name) {
        let version = json!({
            "groupVersion": definition.api_version(),
            "version": definition.version,
        });
        if !versions.contains(&version) {
            versions.push(version);
        }
    }
    json!({ "name": name, "versions": versions, "preferredVersion": versions.first() })
}

/// `/apis/GROUP/VERSION`, `/api/v1`
pub fn resources(registry: &Registry, group: &str, version: &str) -> Result<Value, StatusError> {
    let mut resources = Vec::new();
    let mut group_version = String::new();
    let served = registry.all().iter();
    for definition in served.filter(|one| one.group == group && one.version == version) {
        group_version = definition.api_version();
        resources.push(resource(definition));
        if definition.status_subresource {
            resources.push(json!({
                "name": format!("{}/status", definition.plural),
                "singularName": "",
                "namespaced": definition.namespaced,
                "kind": definition.kind,
                "verbs": ["get", "patch", "update"],
            }));
        }
    }
    if resources.is_empty() {
        return Err(StatusError::no_such_resource());
    }
    Ok(json!({
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": group_version,
        "resources": resources,
    }))
}

fn resource(definition: &ResourceDefinition) -> Value {
    let mut entry = json!({
        "name": definition.plural,
        "singularName": definition.singular,
        "namespaced": definition.namespaced,
        "kind": definition.kind,
        "verbs": VERBS,
    });
    if !definition.short_names.is_empty() {
        entry["shortNames"] = json!(definition.short_names);
    }
    if !definition.categories.is_empty() {
        entry["categories"] = json!(definition.categories);
    }
    entry
}
