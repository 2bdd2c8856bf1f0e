//! Legacy discovery documents, which every client can read: `/api`, `/apis`, and a document for
//! each group and version.

use serde_json::{Value, json};

use resources::served::{Group, Resource};

/// Makes the document for `/api`.
pub(super) fn core_versions(groups: &[Group<'_>]) -> Value {
    let core = groups.iter().find(|group| group.name.is_empty());
    let versions = core.into_iter().flat_map(|group| &group.versions);
    json!({
        "kind": "APIVersions",
        "versions": versions.map(|version| version.name).collect::<Vec<_>>(),
        "serverAddressByClientCIDRs": [],
    })
}

/// Makes the document for `/apis`.
pub(super) fn group_list(groups: &[Group<'_>]) -> Value {
    let named = groups.iter().filter(|group| !group.name.is_empty());
    let groups: Vec<Value> = named.map(entry).collect();
    json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": groups })
}

/// Makes the document for `/apis/GROUP`; `None` if the group is not served.
pub(super) fn group(groups: &[Group<'_>], name: &str) -> Option<Value> {
    let group = groups.iter().find(|group| group.name == name && !name.is_empty())?;
    let mut entry = entry(group);
    entry["kind"] = json!("APIGroup");
    entry["apiVersion"] = json!("v1");
    Some(entry)
}

fn entry(group: &Group<'_>) -> Value {
    let versions: Vec<Value> = group
        .versions
        .iter()
        .map(|version| json!({ "groupVersion": version.group_version, "version": version.name }))
        .collect();
    json!({ "name": group.name, "versions": versions, "preferredVersion": versions.first() })
}

/// Makes the document for `/apis/GROUP/VERSION`, or `/api/v1` (empty group), if served.
pub(super) fn resources(groups: &[Group<'_>], group: &str, version: &str) -> Option<Value> {
    let group = groups.iter().find(|one| one.name == group)?;
    let version = group.versions.iter().find(|one| one.name == version)?;
    let mut resources = Vec::new();
    for resource in &version.resources {
        resources.push(described(resource.name.to_owned(), resource));
        for part in &resource.parts {
            resources.push(described(format!("{}/{}", resource.name, part.name), part));
        }
    }
    Some(json!({
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": version.group_version,
        "resources": resources,
    }))
}

fn described(name: String, resource: &Resource<'_>) -> Value {
    let mut entry = json!({
        "name": name,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind.name,
        "verbs": resource.verbs,
    });
    if resource.kind.name == "Scale" || resource.kind.name == "TokenRequest" {
        entry["group"] = json!(resource.kind.group);
        entry["version"] = json!(resource.kind.version);
    }
    if !resource.short_names.is_empty() {
        entry["shortNames"] = json!(resource.short_names);
    }
    if !resource.categories.is_empty() {
        entry["categories"] = json!(resource.categories);
    }
    if let Some(hash) = &resource.storage_hash {
        entry["storageVersionHash"] = json!(hash);
    }
    entry
}
